"""How the inner loops of this package are compiled.

They are plain functions over arrays. numba compiles each when it is first called and keeps the machine code on disk, so
that later processes only load it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

_P = ParamSpec("_P")
_R = TypeVar("_R")

_PACKAGE = Path(__file__).parent


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that is compiled at its first call and runs without the interpreter's lock."""
    decorate = cast(Any, numba.njit(cache=True, nogil=True, boundscheck=False))
    return cast(Callable[_P, _R], decorate(function))


def forget_stale(package: Path) -> None:
    """Removes the machine code kept for a package if any of its sources is not what it was made of.

    numba looks only at the file of a function itself, not at those of the functions that it calls and takes in.
    """
    stamp = package / "__pycache__" / "compiled.stamp"
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        digest.update(source.read_bytes())
    with suppress(OSError):
        if stamp.exists() and stamp.read_text(encoding="ascii") == digest.hexdigest():
            return
        for pattern in ("*.nbi", "*.nbc"):
            for kept in package.rglob(f"__pycache__/{pattern}"):
                kept.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest.hexdigest(), encoding="ascii")


forget_stale(_PACKAGE)
