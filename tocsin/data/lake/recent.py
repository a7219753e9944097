"""The rows of the newest commits, kept in memory: what is new is mostly asked for right after it was committed."""

from __future__ import annotations

import threading
from collections import OrderedDict

import pyarrow as pa

_VERSIONS = 1_000


class Recent:
    """The last appended rows, version by version without a gap, bounded in bytes. May be used from several threads."""

    def __init__(self, limit: int) -> None:
        self._limit, self._bytes = limit, 0
        self._rows: OrderedDict[int, pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, version: int, rows: pa.Table) -> None:
        """Keeps the rows that a version added to those before, in the place of the oldest."""
        with self._lock:
            if self._rows and version != next(reversed(self._rows)) + 1:
                self._forget()
            self._rows[version] = rows
            self._bytes += rows.nbytes
            while self._bytes > self._limit or len(self._rows) > _VERSIONS:
                self._bytes -= self._rows.popitem(last=False)[1].nbytes

    def forget(self) -> None:
        """Lets go of everything: rows were changed or removed otherwise."""
        with self._lock:
            self._forget()

    def between(self, since: int, until: int) -> pa.Table | None:
        """What the versions after ``since`` up to ``until`` added, if all of them are still here."""
        with self._lock:
            parts = [self._rows.get(version) for version in range(since + 1, until + 1)]
        found = [part for part in parts if part is not None]
        return pa.concat_tables(found) if found and len(found) == len(parts) else None

    def _forget(self) -> None:
        self._rows.clear()
        self._bytes = 0
