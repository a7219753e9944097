"""Dead letters of channels: records that an execution could not be run on, for whom, and why."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.data.lake.folder import Folder
from tocsin.data.lake.table import VERSION, Table

SCHEMA = pa.schema(
    [
        ("execution", pa.int64()),
        ("dataset", pa.string()),
        ("record", pa.string()),
        ("subscription", pa.int64()),
        ("reason", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
_MARKER = "execution"


class Letter(NamedTuple):
    """A record, as JSON, that was set aside for one subscription, or for all (None)."""

    dataset: str
    record: str
    subscription: int | None
    reason: str


class DeadLetters:
    """The dead letters of all channels, a table for each that has any. May be used from several threads."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._tables = {name: Table(folder.below(name), SCHEMA) for name in folder.folders()}

    def folder(self, channel: str) -> Folder:
        """Where a channel's are."""
        return self._folder.below(channel)

    def write(self, channel: str, execution: int, letters: Iterable[Letter], now: datetime) -> None:
        """Keeps what an execution sets aside, in the place of what an attempt at it before a crash did."""
        rows = [{"execution": execution, **letter._asdict(), "at": now} for letter in letters]
        if not rows:
            return
        table = self._table(channel)
        if table.marker(_MARKER) >= execution:
            table.delete(pc.field("execution") >= execution)
        table.append(pa.Table.from_pylist(rows, SCHEMA), {_MARKER: execution})

    def read(self, channel: str) -> pa.Table:
        """All of a channel's."""
        table = self._tables.get(channel)
        return SCHEMA.empty_table() if table is None else table.read().drop_columns(VERSION)

    def count(self, channel: str) -> int:
        """How many a channel has."""
        table = self._tables.get(channel)
        return 0 if table is None else int(table.read(columns=[VERSION]).num_rows)

    def forget(self, channel: str) -> None:
        """A channel that is no more; its files are for the caller to remove."""
        with self._lock:
            self._tables.pop(channel, None)

    def tables(self) -> list[Table]:
        """Every table there is, for upkeep."""
        return list(self._tables.values())

    def _table(self, channel: str) -> Table:
        with self._lock:
            if channel not in self._tables:
                self._tables[channel] = Table(self.folder(channel), SCHEMA)
            return self._tables[channel]
