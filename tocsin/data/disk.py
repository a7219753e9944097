"""Asking the disk itself to keep what was written, which the system otherwise does half a minute later.

A process may die at any moment without harm; what only the system's memory has is lost when the machine loses power. A
file is kept when it is synced, its name when the directory that has it is.
"""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tocsin.data.fence import Fence

FULL: Final = (errno.ENOSPC, errno.EDQUOT)
FULL_SENTENCE: Final = "the disk is full; free some space, and it goes on by itself"
# As the system, Delta's library and object stores say it.
_SIGNS: Final = ("No space left", "os error 28", "StorageFull")
_THREADS = 8


def says_full(text: str) -> bool:
    """Whether the text of an error, whosever it is, says that there is no room on a disk."""
    return any(sign in text for sign in _SIGNS)


def write_durably(file: Path, content: bytes) -> None:
    """Put ``content`` in place as a whole, on disk when this returns: a reader sees the old file or the new one."""
    draft = file.with_name(f"{file.name}.{os.getpid()}.draft")
    with draft.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(file)
    sync_directory(file.parent)


def sync_directory(directory: Path) -> None:
    """Make the names of new files in ``directory`` durable."""
    _sync(directory)


def make_directory(directory: Path) -> None:
    """Make a directory, with those above it that are missing; all of them are on disk when this returns."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        sync_directory(directory.parent)
    elif os.access(directory.parent, os.R_OK):
        # Whoever made it may have died before it was kept.
        sync_directory(directory.parent)


class Disk:
    """Keeps files and directories, several at the same time: the disk merges syncs that wait together.

    Args:
        sync: without it nothing is asked of the disk, and a power cut may undo anything.
        fence: around the directory that is written to; without one, whoever writes is the only one.
    """

    def __init__(self, sync: bool = True, fence: Fence | None = None) -> None:
        self.syncs, self.fence = sync, fence
        self.term = fence.term if fence else 0
        self._threads = ThreadPoolExecutor(_THREADS, "disk")

    def __reduce__(self) -> tuple[type[Disk], tuple[bool]]:
        return Disk, (self.syncs,)

    def keep(self, *paths: Path) -> None:
        """Returns when these files and directories are on disk; raises OSError if it refuses one."""
        wanted = list(paths) if self.syncs else []
        if len(wanted) == 1:
            # Without the way through another thread.
            _sync(wanted[0])
            return
        syncs = [self._threads.submit(_sync, path) for path in wanted]
        wait(syncs)
        for sync in syncs:
            sync.result()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
