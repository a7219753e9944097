"""What executions found: one Delta table per channel, whose commits are the channel's progress.

An execution's number is the version of the table that it committed, so each commit, also one that found nothing, is an
execution, and its markers say which versions of the datasets the channel has seen.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from tocsin.data.compiler.rewrite import BE
from tocsin.data.expiry import Expired, Ids
from tocsin.data.lake import frames
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.table import Snapshot, Table
from tocsin.data.pulls import COLUMNS, Read, pull
from tocsin.model.messages import Pulled

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
FOUND = pa.schema([SCHEMA.field(name) for name in ("be", "payload", "rows", "bytes")])
"""What a query finds, before it has become an execution."""
_SUMMARY: Final = ["be", "bytes"]
# A longer span is read from files, without looking for each of its executions.
_MOST_CACHED: Final = 1024


def seen_marker(dataset: str) -> str:
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


class ChannelResults:
    """The results of one channel."""

    def __init__(self, channel: str, place: Folder | Path, cache: Cache) -> None:
        self.channel = channel
        self._table = Table(place, SCHEMA)
        self._cache = cache
        self._expired = Expired(self._table.folder)
        # What is kept and what is said to be gone change together.
        self._expiring = threading.Lock()

    @property
    def execution(self) -> int:
        """The number of the last execution."""
        return self._table.version

    @property
    def table(self) -> Table:
        return self._table

    def seen_version(self, dataset: str) -> int:
        """The version of a dataset up to which the channel has seen what is new."""
        return self._table.marker(seen_marker(dataset))

    def skip(self, versions: Mapping[str, int]) -> None:
        """Counts what the datasets have up to these versions as seen, without looking at it."""
        self._table.mark(_markers(versions))

    def commit(
        self,
        found: DataFrame,
        versions: Mapping[str, int],
        now: datetime,
        allowed: Callable[[], None] = lambda: None,
    ) -> tuple[int, pa.Table]:
        """Computes an execution and stores it; its number, and of its rows the BE ids and bytes.

        ``allowed`` is called before it is stored; if that raises, it is not.
        """
        execution = self._table.version + 1
        stamp, markers = _stamp(execution, now), _markers(versions)

        def remember(results: pa.Table) -> None:
            self._cache.put(self.channel, execution, results.select(COLUMNS))

        return execution, frames.append(self._table, found_rows(found), markers, _SUMMARY, stamp, remember, allowed)

    def commit_rows(self, found: pa.Table, versions: Mapping[str, int], now: datetime) -> tuple[int, pa.Table]:
        """As :meth:`commit`, with rows of ``FOUND`` that were computed elsewhere; one of each BE subscription."""
        execution = self._table.version + 1
        rows = frames.with_constants(_stamp(execution, now), found).select(SCHEMA.names).cast(SCHEMA)
        if rows.num_rows:
            self._table.append(rows, _markers(versions))
        else:
            self._table.mark(_markers(versions))
        self._cache.put(self.channel, execution, rows.select(COLUMNS))
        return execution, rows.select(_SUMMARY)

    def pull(
        self, first: int, last: int, bes: Iterable[int] | None = None, most: int | None = None
    ) -> Iterator[Pulled]:
        """The results of executions ``first`` to ``last``, of these BE subscriptions or of all, in parts.

        With ``most``, no execution is begun after so many bytes. All is of one moment, however long it takes.
        """
        first, there = max(first, 1), min(last, self.execution)
        wanted = None if bes is None else np.array(list(bes), np.int64)
        with self._expiring:
            oldest, gone = self._expired.oldest, self._expired.last_gone(first, wanted)
            read = self._reader(first, there)
        return pull(read, first, last, there, wanted, most, oldest, gone)

    def expire(self, retention: float, now: datetime, live: Callable[[Ids], Ids] = np.asarray) -> int:
        """Removes results older than ``retention`` seconds; how many.

        ``live`` gives those of some BE subscriptions that still are: their holders can be told what is gone.
        """
        older = pc.field("at") < pa.scalar(now - timedelta(seconds=retention), SCHEMA.field("at").type)
        old = self._table.read(older, ["execution", "be"])
        if not old.num_rows:
            return 0
        with self._expiring:
            self._cache.drop(self.channel)
            # First, so that nothing is ever gone without a word.
            self._expired.add(old["be"].to_numpy(), old["execution"].to_numpy(), live)
            return self._table.delete(older)

    def _reader(self, first: int, last: int) -> Read:
        """Where these executions are read from: memory, if all of them are there."""
        numbers = range(first, last + 1) if last - first < _MOST_CACHED else ()
        tables = [self._cache.get(self.channel, number) for number in numbers]
        cached = {number: table for number, table in zip(numbers, tables, strict=True) if table is not None}
        if numbers and len(cached) == len(numbers):
            return partial(_remember, cached)
        return partial(self._read_stored, self._table.snapshot)

    def _read_stored(self, of: Snapshot, first: int, last: int, columns: list[str], wanted: Ids | None) -> pa.Table:
        execution = pc.field("execution")
        where = (execution >= first) & (execution <= last)
        if wanted is not None:
            where &= pc.field("be").isin(pa.array(wanted))
        return self._table.read(where, columns, since=first - 1, of=of)


def _remember(
    cached: Mapping[int, pa.Table], first: int, last: int, columns: list[str], wanted: Ids | None
) -> pa.Table:
    rows = pa.concat_tables([table.select(columns) for number, table in cached.items() if first <= number <= last])
    return rows if wanted is None else rows.filter(pc.is_in(rows["be"], pa.array(wanted)))


def found_rows(found: DataFrame) -> DataFrame:
    """What a channel's statement gives, with the columns of ``FOUND``."""
    return found.select(F.col(BE).alias("be"), "payload", "rows", "bytes")


def _stamp(execution: int, now: datetime) -> dict[str, pa.Scalar]:
    return {
        "execution": pa.scalar(execution, SCHEMA.field("execution").type),
        "at": pa.scalar(now, SCHEMA.field("at").type),
    }


def _markers(versions: Mapping[str, int]) -> dict[str, int]:
    return {seen_marker(name): version for name, version in versions.items()}


def sizes(rows: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The BE ids of an execution's results and their bytes."""
    return rows["be"].to_numpy(), rows["bytes"].cast(pa.int64()).to_numpy()
