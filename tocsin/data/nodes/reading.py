"""The log of a shared feed as a node reads it: how far it goes, and a part of it as rows in Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from tocsin.data.feeds.access import OPEN, KafkaAccess
from tocsin.data.feeds.addresses import DirectoryLog, LogAddress
from tocsin.data.feeds.batch import paced_ends
from tocsin.data.feeds.lines import read_by_tasks, read_here
from tocsin.data.feeds.pace import BytePace
from tocsin.data.feeds.reader import durable_ends
from tocsin.data.feeds.source import LogRange
from tocsin.errors import SettingsError, UnavailableError

__all__ = ["SliceLog", "open_slices"]


class SliceLog(Protocol):
    """A log that others write. May be used from several threads."""

    @property
    def most_bytes(self) -> int | None:
        """How much a slice may have in what was asked for last, if that was not known before."""

    def require(self, slices: Iterable[int]) -> None:
        """Raises UnavailableError unless these slices can be read from here."""

    def backlog(self, starts: Mapping[int, int]) -> dict[int, int]:
        """How many bytes lie after each of these positions, about."""

    def ranges(self, starts: Mapping[int, int], max_bytes: int) -> list[LogRange]:
        """What a batch of about so many bytes has, in fair shares; nothing of slices in which there is nothing new."""

    def size(self, ranges: Sequence[LogRange]) -> int:
        """How many bytes these have, about."""

    def took(self, row_bytes: int) -> None:
        """The lines that were asked for last are processed, and were so large as rows, as far as is known here."""

    def failed(self) -> None:
        """A batch could not be processed."""

    def lines(self, spark: SparkSession, ranges: Sequence[LogRange]) -> DataFrame:
        """What is there: columns slice, position (after the record), line, damage."""

    def nothing(self, spark: SparkSession) -> DataFrame:
        """The same of a part in which nothing is, found in the same way."""


def open_slices(address: LogAddress, access: KafkaAccess = OPEN, by_executors: bool = True) -> SliceLog:
    """The log at an address; ``access`` is for one in Kafka.

    Unless it is to be read ``by_executors``, a little of it may be read in this process.
    """
    if isinstance(address, DirectoryLog):
        return DirectorySlices(address, by_executors)
    try:
        from tocsin.data.nodes.topic import TopicSlices
    except ImportError:
        raise SettingsError("a feed's log is in Kafka, which needs its client: pip install 'tocsin[kafka]'") from None
    return TopicSlices(address, access)


class DirectorySlices:
    """An embedded log, read by its path."""

    def __init__(self, address: DirectoryLog, by_executors: bool) -> None:
        self._path = Path(address.path)
        self._read = read_by_tasks if by_executors else read_here
        self._pace, self._asked = BytePace(), dict[int, int]()

    @property
    def most_bytes(self) -> None:
        """It was known: positions are bytes."""

    def require(self, slices: Iterable[int]) -> None:
        """Raises UnavailableError unless these slices can be read from here."""
        self._ends(slices)

    def backlog(self, starts: Mapping[int, int]) -> dict[int, int]:
        """How many bytes lie after each of these positions."""
        ends = self._ends(starts)
        return {index: max(ends[index] - start, 0) for index, start in starts.items()}

    def ranges(self, starts: Mapping[int, int], max_bytes: int) -> list[LogRange]:
        """What a batch of about so many bytes has."""
        ends = self._ends(starts)
        begins = [starts.get(index, end) for index, end in enumerate(ends)]
        bounded, self._asked = paced_ends(self._path, begins, ends, max_bytes, self._pace)
        return [(i, begin, end) for i, (begin, end) in enumerate(zip(begins, bounded, strict=True)) if end > begin]

    def size(self, ranges: Sequence[LogRange]) -> int:
        """How many bytes these have."""
        return sum(end - begin for _, begin, end in ranges)

    def took(self, row_bytes: int) -> None:
        """The lines that were asked for last are processed."""
        self._pace.took(self._asked, row_bytes)

    def failed(self) -> None:
        """They could not be: they are read by less at a time."""
        self._pace.failed(self._asked)

    def lines(self, spark: SparkSession, ranges: Sequence[LogRange]) -> DataFrame:
        """What is there."""
        return self._read(spark, self._path, ranges)

    def nothing(self, spark: SparkSession) -> DataFrame:
        """The same of a part in which nothing is."""
        return self.lines(spark, [])

    def _ends(self, slices: Iterable[int]) -> list[int]:
        ends = durable_ends(self._path)
        if missing := [index for index in slices if not 0 <= index < len(ends)]:
            raise UnavailableError(f"the feed log at {self._path} has {len(ends)} slices, and no slice {missing[0]}")
        return ends
