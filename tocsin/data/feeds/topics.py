"""A topic of Kafka as what a feed is filled from: a partition for each slice, a message for each record.

Spark reads it with its own connector. How far the dataset has come is told by its markers alone, as with any log;
nothing is committed to Kafka.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tocsin.data.feeds.access import KafkaAccess
from tocsin.data.feeds.places import TopicLog
from tocsin.data.store import KnownTopic, Topics
from tocsin.errors import ConflictError, SettingsError, UnavailableError
from tocsin.log import get_logger
from tocsin.schema.definitions import Feed

log = get_logger(__name__)

SCHEME: Final = "kafka://"
CALL_SECONDS: Final = 15.0
POLL_SECONDS: Final = 0.1
_LOOK_UP_SECONDS: Final = 1.0
# What goes wrong is told to who asked, not written to the console.
QUIET: Final = {"log_level": 0}
EARLIEST: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]
# Before anything is known of a feed's records.
_RECORD_BYTES: Final = 300.0
_NOT_YET: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError._NOENT,
)

T = TypeVar("T")


class KafkaAddress(NamedTuple):
    """Where the logs are: the servers to begin with, and what the names of their topics begin with."""

    servers: str
    prefix: str


def read_address(url: str) -> KafkaAddress:
    """``kafka://host:9092,host:9092/prefix``; without a prefix it is ``tocsin``."""
    servers, _, prefix = url.removeprefix(SCHEME).partition("/")
    if not url.startswith(SCHEME) or not servers:
        raise SettingsError(f'feeds.log must be "embedded" or kafka://host:9092,host:9092, not {url}')
    return KafkaAddress(servers, prefix or "tocsin")


class SlicedTopic:
    """A topic whose partitions are slices, and whose offsets are positions less a base.

    What can go wrong: Kafka cannot be reached (:class:`UnavailableError`).
    """

    def __init__(self, servers: str, topic: str, access: KafkaAccess) -> None:
        self.servers, self.topic, self.access = servers, topic, access
        self._trouble = ""
        told: dict[str, Any] = {"error_cb": self._note_trouble}
        self.admin = AdminClient({**QUIET, **access.client(), **told, "bootstrap.servers": servers})
        self.record_bytes = _RECORD_BYTES
        self.bases: list[int] = []

    def lines_of(self, frame: DataFrame) -> DataFrame:
        """What Spark has read, as rows of a log."""
        text = F.col("value").cast("string")
        valid = F.is_valid_utf8(text)
        base = F.element_at(F.array(*map(F.lit, self.bases)), F.col("partition") + 1)
        return frame.select(
            F.col("partition").alias("slice"),
            (base + F.col("offset") + 1).alias("position"),
            F.when(valid, text).alias("line"),
            F.when(text.isNull(), "has no value").when(~valid, "is not UTF-8 text").alias("damage"),
        )

    def offsets(self, spec: OffsetSpec, partitions: Iterable[int]) -> dict[int, int]:
        """The first or the last offsets of some partitions."""
        wanted = [TopicPartition(self.topic, index) for index in partitions]
        # All at once, each by itself: of several in one request, the client answers none.
        asked = {place.partition: self._offset(place, spec) for place in wanted}
        return {
            place.partition: int(self.ask(partial(self._take_or_ask, asked, place, spec)).offset) for place in wanted
        }

    def _take_or_ask(self, asked: dict[int, Future[Any]], place: TopicPartition, spec: OffsetSpec) -> Future[Any]:
        return asked.pop(place.partition, None) or self._offset(place, spec)

    def _offset(self, place: TopicPartition, spec: OffsetSpec) -> Future[Any]:
        return self.admin.list_offsets({place: spec}, request_timeout=CALL_SECONDS)[place]

    def ask(self, question: Callable[[], Future[T]]) -> T:
        """Asks until there is an answer: who has a topic that is new, or since a restart, a server may not know yet."""
        deadline = time.monotonic() + CALL_SECONDS
        while True:
            try:
                return self.answer(question())
            except _NotYetError:
                if time.monotonic() > deadline:
                    raise
            self._look_up()
            time.sleep(POLL_SECONDS)

    def _look_up(self) -> None:
        """Finds out anew who has the topic; by itself the client goes on asking as if nobody had been restarted."""
        with suppress(KafkaException):
            self.admin.list_topics(self.topic, timeout=_LOOK_UP_SECONDS)

    def answer(self, asked: Future[T]) -> T:
        """What Kafka says; raises UnavailableError if it does not."""
        try:
            return asked.result(CALL_SECONDS)
        except KafkaException as error:
            failure: KafkaError = error.args[0]
            if failure.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                raise ExistsError from error
            reason = f"Kafka at {self.servers}, topic {self.topic}: {failure.str()}{self._why()}"
            raise (_NotYetError if failure.code() in _NOT_YET else UnavailableError)(reason) from error
        except TimeoutError as error:
            raise UnavailableError(f"Kafka at {self.servers} does not answer{self._why()}; see that it runs") from error

    def _why(self) -> str:
        """What the client complains of, such as a certificate or a password; it tells whoever polls."""
        self.admin.poll(0)
        return f" ({self._trouble})" if self._trouble else ""

    def _note_trouble(self, error: KafkaError) -> None:
        self._trouble = error.str()


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
        self._noting = threading.Lock()
        self._damage = ""

    def find(self, begin: OffsetSpec) -> None:
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

    def note(self, partition: int, offset: int) -> None:
        """There is a record at this offset."""
        with self._noting:
            self._ends[partition] = max(self._ends[partition], self.bases[partition] + offset + 1)

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

    def backlog(self, positions: Sequence[int]) -> int:
        """About how many bytes lie between ``positions`` and the ends."""
        records = sum(max(end - position, 0) for position, end in zip(positions, self._ends, strict=True))
        return int(records * self.record_bytes)

    def place(self) -> TopicLog:
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
            .options(**self.access.spark())
            .option("kafka.bootstrap.servers", self.servers)
            .option("assign", to_json({self.topic: list(range(self.feed.slices))}))
            .option("startingOffsets", to_json({self.topic: offsets}))
            .option("maxOffsetsPerTrigger", str(records))
            .load()
        )
        return self.lines_of(frame)

    def _id(self) -> str:
        described = self.ask(lambda: self.admin.describe_topics(TopicCollection([self.topic]))[self.topic])
        if len(described.partitions) != self.feed.slices:
            raise ConflictError(
                f"the topic {self.topic} has {len(described.partitions)} partitions, and feed {self.feed.name} has "
                f"{self.feed.slices} slices: say INTO {len(described.partitions)} SLICES, or use another topic"
            )
        return str(described.topic_id)

    def _adopt(self, id: str, known: KnownTopic | None, begin: OffsetSpec) -> KnownTopic:
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

    def _offsets(self, spec: OffsetSpec) -> list[int]:
        return list(self.offsets(spec, range(self.feed.slices)).values())


class ExistsError(Exception):
    """There is such a topic."""


class _NotYetError(UnavailableError):
    """A server has not heard of the topic, or of who has it."""


def to_json(value: Any) -> str:
    """As Spark's options have it."""
    return msgspec.json.encode(value).decode()
