"""The log of a shared feed in Kafka, as a node reads it: with Spark's connector, between offsets that are given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from tocsin.data.feeds.access import KafkaAccess
from tocsin.data.feeds.addresses import TopicLog
from tocsin.data.feeds.sliced_topic import LATEST, SlicedTopic
from tocsin.data.feeds.source import LogRange
from tocsin.errors import UnavailableError


class TopicSlices(SlicedTopic):
    """A topic, of which a partition is a slice."""

    def __init__(self, address: TopicLog, access: KafkaAccess) -> None:
        super().__init__(address.servers, address.topic, access)
        self.bases, self.record_bytes = address.bases, address.record_bytes

    def require(self, slices: Iterable[int]) -> None:
        """Raises UnavailableError unless these slices can be read from here."""
        self._ends(slices)

    def backlog(self, starts: Mapping[int, int]) -> dict[int, int]:
        """About how many bytes lie after each of these positions."""
        waiting = self._waiting(starts)
        return {index: int(records * self.record_bytes) for index, records in waiting.items()}

    def ranges(self, starts: Mapping[int, int], max_bytes: int) -> list[LogRange]:
        """What a batch of about so many bytes has."""
        return self.batch_ranges(starts, self._ends(starts), max_bytes)

    def size(self, ranges: Sequence[LogRange]) -> int:
        """About how many bytes these have."""
        return int(sum(end - begin for _, begin, end in ranges) * self.record_bytes)

    def lines(self, spark: SparkSession, ranges: Sequence[LogRange]) -> DataFrame:
        """What is there, each slice by one task."""
        return self.read(spark, ranges)

    def nothing(self, spark: SparkSession) -> DataFrame:
        """The same of a part in which nothing is: from the end of a slice up to there."""
        return self.lines(spark, [(index, end, end) for index, end in self._ends([0]).items()])

    def _waiting(self, starts: Mapping[int, int]) -> dict[int, int]:
        ends = self._ends(starts)
        return {index: max(ends[index] - start, 0) for index, start in starts.items()}

    def _ends(self, slices: Iterable[int]) -> dict[int, int]:
        wanted = list(slices)
        if missing := [index for index in wanted if not 0 <= index < len(self.bases)]:
            raise UnavailableError(f"the topic {self.topic} has {len(self.bases)} slices, and no slice {missing[0]}")
        return self._positions(LATEST, wanted)
