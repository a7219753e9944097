"""Where files wait while they are being received; whatever a crash left there is of no use to anyone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from tocsin.errors import StorageError

_PLACE = "uploads"


@contextmanager
def upload(directory: Path, name: str) -> Iterator[Path]:
    """A path for a new file of that name, below the data directory; the file is removed in the end."""
    place = directory / _PLACE
    try:
        place.mkdir(parents=True, exist_ok=True)
        own = Path(mkdtemp(dir=place))
    except OSError as error:
        raise StorageError(f"files cannot be received into {place}: {error.strerror}") from None
    try:
        yield own / name
    finally:
        shutil.rmtree(own, ignore_errors=True)


def clear(directory: Path) -> None:
    """Removes what earlier runs left behind."""
    shutil.rmtree(directory / _PLACE, ignore_errors=True)
