"""Dead letters of channels: records that an execution could not be run on, for whom, and why."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from tocsin.data.disk import Disk
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

    def __init__(self, directory: Path, disk: Disk | None = None) -> None:
        self._directory, self._disk = directory, disk
        self._lock = threading.Lock()
        found = [path for path in directory.glob("[!.]*") if path.is_dir()] if directory.is_dir() else []
        self._tables = {path.name: Table(path, SCHEMA, disk=disk) for path in found}

    def path(self, channel: str) -> Path:
        """Where a channel's are."""
        return self._directory / channel

    def write(self, channel: str, execution: int, letters: Iterable[Letter], now: datetime) -> None:
        """Keeps what an execution sets aside, in the place of what an attempt at it before a crash did."""
        rows = [{"execution": execution, **letter._asdict(), "at": now} for letter in letters]
        if not rows:
            return
        table = self._table(channel)
        if table.marker(_MARKER) >= execution:
            table.delete(f"execution >= {execution}")
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
                self._tables[channel] = Table(self.path(channel), SCHEMA, disk=self._disk)
            return self._tables[channel]
