"""The fence around a data directory: a file that names the term of whoever may write there.

A data cluster raises it before it reads anything, and whoever writes looks at it after writing and before saying so. So
what an earlier one has said is read by the next, and what it writes later is never said to anybody: of two who each
put something down and then look, at least one sees the other.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tocsin.data.disk import make_directory, sync_directory, write_durably
from tocsin.errors import ConflictError, StorageError, SupersededError
from tocsin.lock import take_lock
from tocsin.private import make_private_directory

if TYPE_CHECKING:
    from tocsin.data.store import Store

NAME: Final = "term"


class Fence:
    """Raised by whoever has ``term``; ``store`` is the identity of the store that gave it.

    What can go wrong: the disk does not let it be looked at (OSError). Then nobody may say anything, either.
    """

    def __init__(self, directory: Path, term: int, store: str = "") -> None:
        self._file, self.term, self._store = directory / NAME, term, store
        self._path, self._written = str(self._file), f"{term:020d}".encode()

    def put_up(self) -> None:
        """All who have an earlier term are superseded when this returns; refused to who has one."""
        if seen_term(self._file.parent) > self.term:
            raise self._superseded_error()
        content = self._written + f" {self._store}\n".encode()
        # Of constant length and in place: a process can start on a full disk, and whoever opens the file by its name
        # sees the newest content, on a shared file system as well.
        if not self._file.exists() or self._file.stat().st_size != len(content):
            write_durably(self._file, content)
            return
        descriptor = os.open(self._file, os.O_WRONLY)
        try:
            os.pwrite(descriptor, content, 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_directory(self._file.parent)

    def check(self) -> None:
        """Raises SupersededError if another has taken over. Opens the file each time, for the sake of shared ones."""
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            seen = os.pread(descriptor, len(self._written), 0)
        finally:
            os.close(descriptor)
        if seen != self._written:
            raise self._superseded_error()

    def is_passed(self) -> bool:
        """Whether somebody with a later term has put up theirs."""
        return seen_term(self._file.parent) > self.term

    def _superseded_error(self) -> SupersededError:
        return SupersededError(
            f"another data cluster has taken over (its term is {seen_term(self._file.parent)}, that of this one "
            f"{self.term}): nothing was accepted, and this one ends; ask the other one"
        )


def put_up_fence(directory: Path, store: Store) -> Fence:
    """The fence around a data directory, put up by whoever has claimed the store."""
    if (seen := seen_term(directory)) >= store.term:
        # The store is an older copy of itself, or was made anew.
        store.term = store.head.raise_above(store.term, seen)
    fence = Fence(directory, store.term, store.identity)
    try:
        fence.put_up()
    except OSError as error:
        raise StorageError(
            f"{directory} cannot be written ({error.strerror or error}): make room or writable, and start again"
        ) from error
    return fence


def lock_directory(directory: Path, claimed: str = "") -> int | None:
    """The lock of a data directory, before anything in it is touched: two processes would ruin each other's files.

    Args:
        claimed: the identity of the store if this process has claimed it. Then another one that was claimed by it
            before, and still has the lock, has been superseded: it keeps the lock, and None is given.
    """
    try:
        make_private_directory(directory)
        make_directory(directory.absolute())
        return take_lock(directory / "lock", "the data directory")
    except ConflictError:
        if not claimed or writing_store(directory) != claimed:
            raise
        return None
    except OSError as error:
        raise StorageError(
            f"the data directory {directory} cannot be used ({error.strerror}); make it writable, or choose another "
            "with --set data.directory=PATH"
        ) from None


def seen_term(directory: Path) -> int:
    """The term of whoever wrote to a data directory last; 0 if nobody has."""
    return _read(directory)[0]


def writing_store(directory: Path) -> str:
    """The identity of the store by which a data directory was written last."""
    return _read(directory)[1]


def _read(directory: Path) -> tuple[int, str]:
    with suppress(FileNotFoundError, ValueError):
        term, _, store = (directory / NAME).read_text(encoding="ascii").strip().partition(" ")
        return int(term), store
    return 0, ""
