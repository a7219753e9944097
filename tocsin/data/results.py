"""What executions found: one Delta table per channel, whose commits are the channel's progress.

An execution's number is the version of the table that it committed, so each commit, also one that found nothing, is an
execution, and its markers say which versions of the datasets the channel has seen.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from tocsin.data.disk import Disk
from tocsin.data.lake import frames
from tocsin.data.lake.table import Table
from tocsin.data.sql.rewrite import BE
from tocsin.model.messages import Result

SCHEMA = pa.schema(
    [
        ("execution", pa.int64()),
        ("be", pa.int64()),
        ("payload", pa.string()),
        ("rows", pa.int32()),
        ("bytes", pa.int32()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
_PULLED = ["execution", "be", "rows", "bytes", "payload"]


def seen(dataset: str) -> str:
    """The name of the marker for the version of a dataset that a channel has seen."""
    return f"seen-{dataset}"


class Cache:
    """The newest executions' results, bounded in bytes, so that brokers' pulls need not read files."""

    def __init__(self, limit: int) -> None:
        self._limit, self._bytes = limit, 0
        self._held: OrderedDict[tuple[str, int], pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, channel: str, execution: int, results: pa.Table) -> None:
        """Keeps an execution's results, if they fit, in the place of the oldest."""
        with self._lock:
            self._forget(channel, execution)
            if results.nbytes > self._limit:
                return
            self._held[channel, execution] = results
            self._bytes += results.nbytes
            while self._bytes > self._limit:
                self._bytes -= self._held.popitem(last=False)[1].nbytes

    def get(self, channel: str, execution: int) -> pa.Table | None:
        """An execution's results, if they are still here."""
        with self._lock:
            return self._held.get((channel, execution))

    def drop(self, channel: str) -> None:
        """Forgets a channel."""
        with self._lock:
            for key in [key for key in self._held if key[0] == channel]:
                self._forget(*key)

    def _forget(self, channel: str, execution: int) -> None:
        held = self._held.pop((channel, execution), None)
        self._bytes -= held.nbytes if held is not None else 0


class Results:
    """The results of one channel."""

    def __init__(self, channel: str, directory: Path, cache: Cache, disk: Disk | None = None) -> None:
        self.channel = channel
        self._table = Table(directory, SCHEMA, disk=disk)
        self._cache = cache

    @property
    def execution(self) -> int:
        """The number of the last execution."""
        return self._table.version

    @property
    def table(self) -> Table:
        return self._table

    def seen(self, dataset: str) -> int:
        """The version of a dataset up to which the channel has seen what is new."""
        return self._table.marker(seen(dataset))

    def skip(self, versions: Mapping[str, int]) -> None:
        """Counts what the datasets have up to these versions as seen, without looking at it."""
        self._table.mark({seen(name): version for name, version in versions.items()})

    def commit(self, found: DataFrame, versions: Mapping[str, int], now: datetime) -> tuple[int, pa.Table]:
        """Computes an execution and stores it; its number, and of its rows the BE ids and bytes."""
        execution = self._table.version + 1
        rows = found.select(F.col(BE).alias("be"), "payload", "rows", "bytes")
        stamp = {
            "execution": pa.scalar(execution, SCHEMA.field("execution").type),
            "at": pa.scalar(now, SCHEMA.field("at").type),
        }
        markers = {seen(name): version for name, version in versions.items()}

        def remember(results: pa.Table) -> None:
            self._cache.put(self.channel, execution, results.select(_PULLED))

        return execution, frames.append(self._table, rows, markers, ["be", "bytes"], stamp, remember)

    def pull(self, first: int, last: int, bes: Iterable[int] | None) -> list[Result]:
        """The results of executions ``first`` to ``last``, of these BE subscriptions or of all."""
        first, last = max(first, 1), min(last, self.execution)
        wanted = None if bes is None else pa.array(bes, pa.int64())
        cached = {n: self._cache.get(self.channel, n) for n in range(max(first, last - 1023), last + 1)}
        held = [table for n, table in sorted(cached.items()) if table is not None]
        missing = first <= last and (last - first >= 1024 or any(table is None for table in cached.values()))
        parts = [self._stored(first, last)] if missing else held
        rows = pa.concat_tables([_empty(), *parts])
        if wanted is not None:
            rows = rows.filter(pc.is_in(rows["be"], wanted))
        return _results(rows.sort_by([("execution", "ascending"), ("be", "ascending")]))

    def expire(self, retention: float, now: datetime) -> int:
        """Removes results older than ``retention`` seconds; how many."""
        older = pc.field("at") < pa.scalar(now - timedelta(seconds=retention), SCHEMA.field("at").type)
        if not self._table.read(older, ["be"]).num_rows:
            return 0
        self._cache.drop(self.channel)
        return self._table.delete(older)

    def _stored(self, first: int, last: int) -> pa.Table:
        execution = pc.field("execution")
        return self._table.read((execution >= first) & (execution <= last), _PULLED, since=first - 1)


def _empty() -> pa.Table:
    return pa.schema([SCHEMA.field(name) for name in _PULLED]).empty_table()


def _results(rows: pa.Table) -> list[Result]:
    columns = [rows[name].to_pylist() for name in _PULLED]
    return [
        Result(execution, be, count, size, Raw(payload.encode()))
        for execution, be, count, size, payload in zip(*columns, strict=True)
    ]


def sizes(rows: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The BE ids of an execution's results and their bytes."""
    return rows["be"].to_numpy(), rows["bytes"].cast(pa.int64()).to_numpy()
