"""The topic of one feed, as the data cluster reads it: how far it goes, and batches of it.

How far the dataset has come is told by its markers alone, as with any log; nothing is committed to Kafka.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.feeds.access import KafkaAccess
from tocsin.data.feeds.addresses import TopicLog
from tocsin.data.feeds.sliced_topic import CALL_SECONDS, EARLIEST, ISOLATION, LATEST, SlicedTopic, as_options, to_json
from tocsin.data.feeds.source import ranges_between
from tocsin.data.store import KnownTopic, Topics
from tocsin.errors import ConflictError, UnavailableError
from tocsin.log import get_logger
from tocsin.schema.definitions import Feed

log = get_logger(__name__)


class FeedTopic(SlicedTopic):
    """The topic of one feed, as far as it is read.

    What can go wrong: Kafka cannot be reached (:class:`UnavailableError`). The topic is another than before (it begins
    after what the dataset has, and ``damage`` says so), or has another number of partitions (:class:`ConflictError`).

    Args:
        read: positions up to which it is known to have been read.
    """

    def __init__(
        self, servers: str, topic: str, feed: Feed, topics: Topics, read: Sequence[int], access: KafkaAccess
    ) -> None:
        super().__init__(servers, topic, access)
        self.feed = feed
        self._topics, self._read = topics, list(read)
        self._ends: list[int] = []
        # Whoever asks Kafka meanwhile must not undo what was noted.
        self._noting = threading.Condition()
        self._damage = ""
        self._closed = threading.Event()

    def find(self, begin: int) -> None:
        """Finds out how far it goes; one that was not known before is taken from ``begin`` on."""
        known, found = self._topics.find(self.feed.name), self._id()
        if known is None or known.id != found:
            known = self._adopt(found, known, begin)
        self.bases = known.bases
        self.look()

    def look(self) -> None:
        """Finds out how far it goes by now."""
        latest = self._offsets(LATEST)
        with self._noting:
            known = zip(self.bases, latest, self._read, self._ends or self._read, strict=True)
            self._ends = [max(base + offset, read, end) for base, offset, read, end in known]
            self._noting.notify_all()

    def keep_looking(self, pause: float) -> None:
        """Looks every so many seconds how far it goes, until it is closed: others may write it."""
        threading.Thread(target=self._look_again, args=(pause,), name=f"topic-{self.topic}", daemon=True).start()

    def _look_again(self, pause: float) -> None:
        while not self._closed.wait(pause):
            with suppress(UnavailableError):
                self.look()

    def close(self) -> None:
        """Looks no more."""
        self._closed.set()

    def note(self, partition: int, offset: int) -> None:
        """There is a record at this offset."""
        with self._noting:
            self._ends[partition] = max(self._ends[partition], self.bases[partition] + offset + 1)
            self._noting.notify_all()

    def has_room(self) -> bool:
        """Whether Kafka answers."""
        try:
            self.admin.list_topics(self.topic, timeout=CALL_SECONDS)
        except KafkaException:
            return False
        return True

    def ends(self) -> list[int]:
        """Up to where each slice is known to go."""
        return list(self._ends)

    def wait_for_more(self, positions: Sequence[int], given_up: Callable[[], bool]) -> None:
        """Returns when the topic goes beyond these positions, or nobody wants to know any more; see :meth:`wake`."""
        with self._noting:
            self._noting.wait_for(lambda: given_up() or self.backlog(positions) > 0)

    def wake(self) -> None:
        """Has those who wait for more look again."""
        with self._noting:
            self._noting.notify_all()

    def batch_ends(self, starts: Sequence[int], max_bytes: int) -> list[int]:
        """How far a batch of about so many bytes goes from these positions."""
        ends = list(starts)
        for index, _, end in self.batch_ranges(dict(enumerate(starts)), dict(enumerate(self.ends())), max_bytes):
            ends[index] = end
        return ends

    def batch(self, spark: SparkSession, starts: Sequence[int], ends: Sequence[int]) -> DataFrame:
        """What lies between these positions, as rows of a log."""
        return self.read(spark, ranges_between(starts, ends))

    def backlog(self, positions: Sequence[int]) -> int:
        """About how many bytes lie between ``positions`` and the ends."""
        records = sum(max(end - position, 0) for position, end in zip(positions, self._ends, strict=True))
        return int(records * self.record_bytes)

    def address(self) -> TopicLog:
        """Where others can read it."""
        return TopicLog(self.servers, self.topic, self.bases, self.record_bytes)

    def newest_ends(self) -> list[int]:
        """Up to where each slice goes by now."""
        self.look()
        return self.ends()

    def damage(self) -> str:
        """What has been lost from under the feed, if anything."""
        return self._damage

    def stream(self, spark: SparkSession, positions: Sequence[int], max_bytes: int) -> DataFrame:
        """The log from these positions on, in micro-batches of about so many bytes."""
        offsets = {str(index): max(position - self.bases[index], 0) for index, position in enumerate(positions)}
        records = max(int(max_bytes / self.record_bytes), self.feed.slices)
        frame = (
            spark.readStream.format("kafka")
            .options(**self.access.spark(), **as_options(ISOLATION))
            .option("kafka.bootstrap.servers", self.servers)
            .option("assign", to_json({self.topic: list(range(self.feed.slices))}))
            .option("startingOffsets", to_json({self.topic: offsets}))
            .option("maxOffsetsPerTrigger", str(records))
            .load()
        )
        return self.lines_of(frame)

    def _describe(self) -> Any:
        return self.answer(self.admin.describe_topics(TopicCollection([self.topic]))[self.topic])

    def _id(self) -> str:
        described = self.ask(self._describe)
        if len(described.partitions) != self.feed.slices:
            raise ConflictError(
                f"the topic {self.topic} has {len(described.partitions)} partitions, and feed {self.feed.name} has "
                f"{self.feed.slices} slices: say INTO {len(described.partitions)} SLICES, or use another topic"
            )
        return str(described.topic_id)

    def _adopt(self, id: str, known: KnownTopic | None, begin: int) -> KnownTopic:
        """A topic from ``begin`` on comes after what the dataset has.

        One in the place of what the feed had before has only what was sent to it since, and is read from its beginning.
        """
        first = self._offsets(EARLIEST if known else begin)
        if known:
            self._damage = (
                f"feed {self.feed.name}: the topic {self.topic} was made anew; what was accepted before and is not in "
                "the dataset is lost"
            )
            log.error(self._damage)
        topic = KnownTopic(id, [read - offset for read, offset in zip(self._read, first, strict=True)])
        self._topics.put(self.feed.name, topic)
        return topic

    def _offsets(self, which: int) -> list[int]:
        return list(self.offsets(which, range(self.feed.slices)).values())
