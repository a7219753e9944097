"""Files that processing nodes wrote and nobody has committed: removed after a while, and not taken any more by then.

A node's file may be offered late, or never. The two times lie far apart, so that a file that is removed is one that
nobody can have committed meanwhile, not even another process that has taken over this table.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Container
from contextlib import suppress
from secrets import token_hex
from typing import Final
from uuid import uuid4

from tocsin.data.lake.entries import LOG
from tocsin.data.lake.folder import DRAFT, Folder, FoundFile
from tocsin.errors import InvalidError

LATEST_SECONDS: Final = 1800.0
REMOVED_SECONDS: Final = 3600.0
_AGAIN_SECONDS: Final = 600.0
_NAME: Final = re.compile(r"node-[0-9a-f]{32}\.parquet")
# Goes on while a machine sleeps, where there is such a clock.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class OutdatedError(InvalidError):
    """What is offered could have been taken once, and cannot any more: it is to be made anew."""


class StoreClock:
    """What time it is where a table's files are, by which their age is judged: this machine's clock may be off.

    It is read off a file that is put there, every ten minutes at most. May be used by several threads.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._ahead, self._due = 0.0, -1.0

    def now(self) -> float:
        """In seconds since 1970, as the store has it; never later. Raises OSError if that cannot be found out."""
        with self._lock:
            passed = time.clock_gettime(_CLOCK)
            if passed >= self._due:
                self._ahead = self._look() - time.clock_gettime(_CLOCK)
                self._due = passed + _AGAIN_SECONDS
            return self._ahead + time.clock_gettime(_CLOCK)

    def _look(self) -> float:
        name = f"{DRAFT}-{token_hex(4)}"
        try:
            self._folder.write(name, b"what time is it?")
            found = self._folder.find(name)
        finally:
            with suppress(OSError):
                self._folder.delete(name)
        if found is None:
            raise OSError(f"{self._folder.url} does not keep what is written there")
        return found.changed_at


def new_name() -> str:
    """A name for a node's file that nobody ever used; by it, one that nobody has claimed is known as such."""
    return f"node-{uuid4().hex}.parquet"


def is_name(name: str) -> bool:
    """Whether a file of this name is a node's."""
    return _NAME.fullmatch(name) is not None


def is_too_old(file: FoundFile, clock: StoreClock) -> bool:
    """Whether it is too late to commit a file."""
    return clock.now() - file.changed_at > LATEST_SECONDS


def find_unclaimed(table: Folder, known: Container[str]) -> set[str]:
    """The paths of nodes' files in a table's folder that are in no commit, ``known`` being in one, and will be in none.

    Only whoever made the last commit is to ask. It is at least as late as the newest entry of the log says, which was
    written by whom the table belongs to; so nothing has to be written to find room on a full disk.
    """
    now = max((entry.changed_at for entry in table.below(LOG).files().values()), default=0.0)
    found = table.files().items()
    old = [name for name, file in found if is_name(name) and now - file.changed_at > REMOVED_SECONDS]
    return {path for path in map(table.path, old) if path not in known}
