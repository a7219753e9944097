"""Directories that are removed as a whole: after a crash or a power cut each is there, or it is not.

A directory is first renamed, then whatever says that it exists is changed, and then its files are deleted. What is
found under its other name at a start is put back or deleted, as whoever knows what exists decides.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Final, Protocol

from tocsin.data.disk import sync_directory
from tocsin.errors import StorageError
from tocsin.log import get_logger

log = get_logger(__name__)

_PREFIX: Final = ".removed-"


class Removable(Protocol):
    """What can be taken away, and either put back or removed for good."""

    def take_away(self) -> bool: ...

    def put_back(self) -> None: ...

    def finish_removal(self) -> None: ...


def discard(removable: Removable) -> None:
    """Removes a directory, if there is one."""
    if removable.take_away():
        removable.finish_removal()


@contextmanager
def set_aside(*removables: Removable) -> Iterator[None]:
    """Takes directories away, for good when the block ends; they are put back if it raises an error.

    Raises StorageError, with everything where it was, if the system does not let go of one.
    """
    taken: list[Removable] = []
    try:
        taken.extend(removable for removable in removables if removable.take_away())
        yield
    except Exception:
        for removable in taken:
            removable.put_back()
        raise
    for removable in taken:
        try:
            removable.finish_removal()
        except StorageError as error:
            log.warning("what was removed is still there in part; the rest goes at the next start", reason=str(error))


def find_unfinished(place: Path) -> list[Path]:
    """The directories in ``place`` of which a removal did not come to its end."""
    return [found.with_name(found.name.removeprefix(_PREFIX)) for found in place.glob(f"{_PREFIX}*")]


def put_back(directory: Path) -> None:
    """Undoes a removal that did not come to its end."""
    aside(directory).rename(directory)
    with suppress(OSError):
        sync_directory(directory.parent)


def finish(directory: Path) -> None:
    """Ends a removal that did not come to its end."""
    shutil.rmtree(aside(directory), ignore_errors=True)


def aside(directory: Path) -> Path:
    """Where a directory is while it is being removed."""
    return directory.with_name(f"{_PREFIX}{directory.name}")


def fresh_directory(place: Path) -> Path:
    """A new directory in ``place``, and what earlier runs left there removed.

    A new one each time: the Spark of a process that was killed lives a moment longer, and still writes to its own.
    """
    shutil.rmtree(place, ignore_errors=True)
    try:
        place.mkdir(parents=True, exist_ok=True)
        return Path(mkdtemp(dir=place))
    except OSError as error:
        raise StorageError(f"temporary files cannot be kept in {place}: {error.strerror}") from None


def take_away(directory: Path) -> bool:
    """Begins a removal; False if there is no such directory."""
    if not directory.exists():
        return False
    try:
        shutil.rmtree(aside(directory), ignore_errors=True)
        directory.rename(aside(directory))
        sync_directory(directory.parent)
    except OSError as error:
        if not directory.exists():
            put_back(directory)
        raise StorageError(
            f"{directory} cannot be removed ({error.strerror or error}): nothing was changed; make {directory.parent} "
            "writable and try again"
        ) from error
    return True
