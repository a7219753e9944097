"""The topic of one feed, as the data cluster reads it: how far it goes, and batches of it.

How far the dataset has come is told by its markers alone, as with any log; nothing is committed to Kafka.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final

from confluent_kafka import KafkaException
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.feeds.access import KafkaAccess
from tocsin.data.feeds.addresses import TopicLog
from tocsin.data.feeds.sliced_topic import (
    CALL_SECONDS,
    EARLIEST,
    LATEST,
    READING,
    DescribedTopic,
    SlicedTopic,
    as_options,
    to_json,
)
from tocsin.data.feeds.source import ranges_between
from tocsin.data.store import KnownTopic, Topics
from tocsin.errors import ConflictError, UnavailableError
from tocsin.log import get_logger
from tocsin.schema.definitions import Feed

log = get_logger(__name__)

# Partitions are added seldom, and what they have stays there for a while.
_COMPARE_SECONDS: Final = 10.0


class FeedTopic(SlicedTopic):
    """The topic of one feed, as far as it is read.

    What can go wrong: Kafka cannot be reached (:class:`UnavailableError`). The topic is another than before (it begins
    after what the dataset has), or has fewer partitions than the feed has slices (:class:`ConflictError`). It is not to
    be seen any more, is made anew, or is given more partitions while it is read: ``damage`` says so.

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
        self._id = self._damage = ""
        # What is wrong as long as it lasts.
        self._unreachable = self._changed = ""
        self._closed = threading.Event()

    def find(self, begin: int) -> None:
        """Finds out how far it goes; one that was not known before is taken from ``begin`` on."""
        known, found = self._topics.find(self.feed.name), self.describe()
        if found.partitions < self.feed.slices:
            raise ConflictError(
                f"the topic {self.topic} has {found.partitions} partitions, and feed {self.feed.name} has "
                f"{self.feed.slices} slices: {self._mend(found.partitions)}"
            )
        if known is None or known.id != found.id:
            known = self._adopt(found.id, known, begin)
        elif len(known.bases) < self.feed.slices:
            known = self._grow(known)
        self._id, self.bases = found.id, known.bases[: self.feed.slices]
        self.look()
        self._compare(found)

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
        compared = time.monotonic()
        while not self._closed.wait(pause):
            try:
                self.look()
                if time.monotonic() - compared > _COMPARE_SECONDS:
                    compared = time.monotonic()
                    self._compare(self.describe())
            except UnavailableError as error:
                self._note_unreachable(str(error))
            else:
                self._unreachable = ""

    def _note_unreachable(self, reason: str) -> None:
        if not self._unreachable:
            log.warning("a topic cannot be seen", feed=self.feed.name, topic=self.topic, reason=reason)
        self._unreachable = f"feed {self.feed.name}: {reason}; what is there by now is not known until it can be seen"

    def _compare(self, found: DescribedTopic) -> None:
        """Notes how the topic differs from the one that is read."""
        before, self._changed = self._changed, ""
        if found.id != self._id:
            self._changed = (
                f"feed {self.feed.name}: the topic {self.topic} was made anew while it was read; what is sent to it is "
                "read when the data cluster has started again"
            )
        elif self.feed.topic and found.partitions > self.feed.slices:
            self._changed = (
                f"feed {self.feed.name}: the topic {self.topic} has {found.partitions} partitions by now, and what is "
                f"in the last {found.partitions - self.feed.slices} is not read: say CREATE OR REPLACE FEED … INTO "
                f"{found.partitions} SLICES, and these are read from their beginning"
            )
        if self._changed and self._changed != before:
            log.error(self._changed)

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

    def batch_ends(self, starts: Sequence[int], max_bytes: int, slices: Collection[int]) -> list[int]:
        """How far a batch of about so many bytes of some slices goes from these positions."""
        ends, chosen = list(starts), {index: starts[index] for index in slices}
        for index, _, end in self.batch_ranges(chosen, dict(enumerate(self.ends())), max_bytes):
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
        """What has been lost from under the feed, or keeps it from being read, if anything."""
        stuck = f"feed {self.feed.name}: {self.stuck}" if self.stuck else ""
        return "; ".join(filter(None, (self._damage, self._unreachable, self._changed, stuck)))

    def stream(self, spark: SparkSession, positions: Sequence[int], max_bytes: int) -> DataFrame:
        """The log from these positions on, in micro-batches of about so many bytes."""
        offsets = {str(index): max(position - self.bases[index], 0) for index, position in enumerate(positions)}
        records = max(int(max_bytes / self.record_bytes), self.feed.slices)
        frame = (
            spark.readStream.format("kafka")
            .options(**self.access.spark(), **as_options(READING))
            .option("kafka.bootstrap.servers", self.servers)
            .option("assign", to_json({self.topic: list(range(self.feed.slices))}))
            .option("startingOffsets", to_json({self.topic: offsets}))
            .option("maxOffsetsPerTrigger", str(records))
            .load()
        )
        return self.lines_of(frame)

    def _mend(self, partitions: int) -> str:
        """What to do about too few partitions."""
        if self.feed.topic:
            return f"say CREATE OR REPLACE FEED … INTO {partitions} SLICES, or have partitions added"
        return "add partitions to it, or delete it if nothing in it is needed; then it is made anew"

    def _grow(self, known: KnownTopic) -> KnownTopic:
        """Of partitions that were added since, everything is taken."""
        topic = KnownTopic(known.id, [*known.bases, *self._read[len(known.bases) :]])
        self._topics.put(self.feed.name, topic)
        return topic

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
