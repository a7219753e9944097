"""The Rust crate a-tree, built by cargo into the user's cache directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Final

from tocsin.bench.content.contestant import Entry
from tocsin.errors import UnavailableError

NAME: Final = "a-tree"
_PROGRAM: Final = "tocsin-bench-a-tree"
_FILES: Final = ("Cargo.toml", "a_tree.rs")
_BUILD_SECONDS: Final = 900


def build() -> Entry:
    """How to start it; where it cannot be built, an UnavailableError says why."""
    if shutil.which("cargo") is None:
        raise UnavailableError(f"{NAME} is left out: cargo, which builds it, is not installed")
    directory = _cache() / "a-tree"
    directory.mkdir(parents=True, exist_ok=True)
    for file in _FILES:
        _copy(file, directory / file)
    command = ["cargo", "build", "--release", "--quiet", "--target-dir", "target"]
    try:
        subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True, timeout=_BUILD_SECONDS)
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise UnavailableError(f"{NAME} is left out: cargo does not build it in {directory}: {reason}") from None
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{NAME} is left out: cargo takes more than {_BUILD_SECONDS} s to build it") from None
    return Entry(NAME, [str(directory / "target" / "release" / _PROGRAM)])


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tocsin" / "bench"


def _copy(file: str, to: Path) -> None:
    """Only what has changed, so that cargo does not build it again."""
    content = resources.files(__package__).joinpath(file).read_bytes()
    if not to.exists() or to.read_bytes() != content:
        to.write_bytes(content)
