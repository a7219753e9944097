"""How the inner loops of this package are compiled.

They are plain functions over arrays. numba compiles each when it is first called and keeps the machine code on disk, so
that later processes only load it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
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
    """Removes the machine code kept for a package if any source that it was made of is not what it was.

    numba looks only at the file of a function itself, not at those of the functions that it calls and takes in.
    """
    stamp = package / "__pycache__" / "compiled.stamp"
    digest = hashlib.sha256()
    for name, source in sorted(_sources(package).items()):
        digest.update(name.encode() + b"\0" + source)
    with suppress(OSError):
        if stamp.exists() and stamp.read_text(encoding="ascii") == digest.hexdigest():
            return
        for pattern in ("*.nbi", "*.nbc"):
            for kept in package.rglob(f"__pycache__/{pattern}"):
                kept.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest.hexdigest(), encoding="ascii")


def _sources(package: Path) -> dict[str, bytes]:
    """The files with compiled functions, and those of the package that they import from, as far as that goes."""
    files = {path.relative_to(package).with_suffix("").as_posix(): path.read_bytes() for path in package.rglob("*.py")}
    waiting, found = [name for name, source in files.items() if b"@compiled" in source], dict[str, bytes]()
    while waiting:
        name = waiting.pop()
        if name in files and name not in found:
            found[name] = files[name]
            waiting += _find_imports(package.name, files[name].decode())
    return found


def _find_imports(package: str, source: str) -> Iterator[str]:
    """What a module of the package may import from it: modules, and names that may be modules."""
    statement = rf"^ *from [\w.]*\b{package}\.?([\w.]*) import (\([^)]*\)|[^\n]*)"
    for module, names in re.findall(statement, source, re.MULTILINE):
        inner = module.replace(".", "/")
        yield from (inner, f"{inner}/__init__")
        yield from (f"{inner}/{name}".lstrip("/") for name in re.findall(r"\w+", names))


forget_stale(_PACKAGE)
