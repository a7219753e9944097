"""Files of a table that its newest state does not have: when they may go."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable

from tocsin.data.lake.folder import Folder
from tocsin.data.lake.snapshot import Snapshot
from tocsin.data.lake.unclaimed import find_unclaimed, is_name


class RetiredFiles:
    """Remembers since when files are no longer part of a table, and who still reads them. To be called locked."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._since: list[tuple[float, str]] = []
        self._held: weakref.WeakSet[Snapshot] = weakref.WeakSet()
        self._doomed: frozenset[str] = frozenset()

    def hold(self, snapshot: Snapshot) -> None:
        """Its files stay while somebody has it."""
        self._held.add(snapshot)

    def add(self, paths: Iterable[str]) -> None:
        """These are no longer part of the table."""
        now = time.monotonic()
        self._since += [(now, path) for path in paths]

    def add_strays(self, snapshot: Snapshot) -> None:
        """Files in the folder that belong to no commit: left by one that failed, or by a process that died.

        Those that nodes wrote may be offered yet, and go by their age.
        """
        known, names = {file.path for file in snapshot.files}, self._folder.files()
        found = (self._folder.path(name) for name in names if name[0] not in "._" and not is_name(name))
        self.add([path for path in found if path not in known])

    def take_back(self, paths: set[str]) -> None:
        """These are part of the table again."""
        self._since = [(since, path) for since, path in self._since if path not in paths]

    def is_doomed(self, path: str) -> bool:
        """Whether a file is being deleted, or was: nobody may commit it any more."""
        return path in self._doomed

    def doom(self, grace: float) -> frozenset[str]:
        """The files to be deleted now: those that no held snapshot and none of the last ``grace`` seconds has."""
        needed = {file.path for snapshot in self._held for file in snapshot.files}
        before = time.monotonic() - grace
        doomed = {path for since, path in self._since if since <= before and path not in needed}
        self.take_back(doomed)
        self._doomed = frozenset(doomed | find_unclaimed(self._folder, needed))
        return self._doomed
