"""Files that are nobody else's business: secrets, and what people said and asked."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_FILE: Final = 0o600
_DIRECTORY: Final = 0o700


def make_private(file: Path) -> None:
    """Lets nobody but this user read ``file``, which is made, with its directory, when missing.

    A directory that was there before keeps its mode: it may be shared, and is not ours to close. A file of somebody
    else's stays as it is. What SQLite puts beside a database has the mode of the database.
    """
    make_private_directory(file.parent)
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE))
    for each in (file, *file.parent.glob(f"{file.name}-*")):
        with suppress(PermissionError, FileNotFoundError):
            each.chmod(_FILE)


def make_private_directory(directory: Path) -> None:
    """Makes a directory when missing, those above it too; this one lets nobody else in."""
    if not directory.is_dir():
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(_DIRECTORY, exist_ok=True)
