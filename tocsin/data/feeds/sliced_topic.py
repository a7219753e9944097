"""A topic of Kafka as what a feed is filled from: a partition for each slice, a message for each record.

Spark reads it with its own connector. How far the dataset has come is told by its markers alone, as with any log;
nothing is committed to Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tocsin.data.feeds.access import KafkaAccess
from tocsin.data.feeds.batch import fair_shares
from tocsin.data.feeds.checking import LETTER_BYTES, MESSAGE_BYTES, SEVERAL
from tocsin.data.feeds.metering import MeasuredRead
from tocsin.data.feeds.pace import FEWEST, RecordPace
from tocsin.data.feeds.source import ARROW, LogRange
from tocsin.data.lake.frames import in_one_piece
from tocsin.errors import SettingsError, UnavailableError
from tocsin.log import get_logger

log = get_logger(__name__)

SCHEME: Final = "kafka://"
CALL_SECONDS: Final = 15.0
POLL_SECONDS: Final = 0.1
_LOOK_UP_SECONDS: Final = 1.0
# What goes wrong is told to who asked, not written to the console.
QUIET: Final = {"log_level": 0}
# Kafka's own numbers for the first and the last offset, where a time is asked for.
EARLIEST: Final = -2
LATEST: Final = -1
# What was never committed, or taken back, is not there.
ISOLATION: Final = {"isolation.level": "read_committed"}
# Of Spark's consumers. One that is to read elsewhere than it has asked for ahead waits until that is answered, half a
# second if nothing comes; whatever they are told to read is there, so that there is nothing to wait for.
READING: Final = ISOLATION | {"fetch.max.wait.ms": "1"}
# Before anything is known of a feed's records.
_RECORD_BYTES: Final = 300.0
_WEIGHT: Final = 0.1
# So many times what a batch is to have, a single slice of it may have: records differ in size.
_TIMES: Final = 2
_NOT_YET: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError._NOENT,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
)

T = TypeVar("T")
_Row = tuple[int, int, str | None, str | None]


class KafkaAddress(NamedTuple):
    """Where the logs are: the servers to begin with, and what the names of their topics begin with."""

    servers: str
    prefix: str


class DescribedTopic(NamedTuple):
    """A topic by the id that Kafka gave it when it was made, and how many partitions it has by now."""

    id: str
    partitions: int


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
        client: dict[str, Any] = {**QUIET, **access.client(), "bootstrap.servers": servers}
        self.admin = AdminClient({**client, **told})
        self._consumer = Consumer({**client, **ISOLATION, "group.id": self._group})
        self.record_bytes = _RECORD_BYTES
        self.pace = RecordPace(_RECORD_BYTES)
        self._max_bytes = 0
        self.bases: list[int] = []
        self._reading: MeasuredRead | None = None
        # What is read just now, with what was deleted and without, and offsets of messages that have failed alone.
        self._asked: list[LogRange] = []
        self._there: list[LogRange] = []
        self._stuck: dict[int, int] = {}

    @property
    def stuck(self) -> str:
        """Which messages could not be processed though they were read alone; empty if there are none."""
        places = ", ".join(f"offset {offset} of partition {index}" for index, offset in sorted(self._stuck.items()))
        if not places:
            return ""
        return (
            f"the topic {self.topic} has messages that could not be processed though each was read alone: {places}; "
            "they are tried again, and passed by when they are deleted there (kafka-delete-records)"
        )

    @property
    def most_bytes(self) -> int | None:
        """How much a slice may have in what was asked for last, if its messages must not be as large as they may be."""
        if sum(_lengths(self._there).values()) <= FEWEST:
            return None
        return max(FEWEST * MESSAGE_BYTES // len(self._there), _TIMES * self._max_bytes, _TIMES * MESSAGE_BYTES)

    @property
    def _group(self) -> str:
        """Who reads, as far as Kafka wants to know: nothing is committed under this name."""
        return f"tocsin-{self.topic}"

    def read(self, spark: SparkSession, ranges: Sequence[LogRange], ends: bool = False) -> DataFrame:
        """What is there between these positions, as rows of a log, each slice by one task.

        What the topic has deleted is damage. With ``ends``, a row of each slice says how far it was read, also where
        nothing is: offsets may belong to no record.
        """
        first = self._positions(EARLIEST, [index for index, _, _ in ranges])
        there = [(index, max(begin, first[index]), end) for index, begin, end in ranges if end > first[index]]
        rows = [self._gap(index, begin, min(first[index], end)) for index, begin, end in ranges if begin < first[index]]
        rows += [(index, end, None, None) for index, _, end in ranges if ends]
        self._asked, self._there = list(ranges), there
        self._reading = MeasuredRead(sum(end - begin for _, begin, end in there)) if there else None
        frames = [self.lines_of(self._reading.watch(self._load(spark, there)))] if self._reading else []
        if rows or not frames:
            told = pa.Table.from_pylist([dict(zip(ARROW.names, row, strict=True)) for row in rows], ARROW)
            frames.append(in_one_piece(spark, told))
        return frames[0].unionByName(frames[1]) if len(frames) > 1 else frames[0]

    def _gap(self, index: int, begin: int, end: int) -> _Row:
        offsets = f"{begin - self.bases[index]} to {end - self.bases[index] - 1}"
        damage = f"the topic {self.topic} has deleted offsets {offsets} of partition {index} before they were read"
        log.error(damage)
        return index, end, None, damage

    def _load(self, spark: SparkSession, ranges: Sequence[LogRange]) -> DataFrame:
        begins = {str(index): begin - self.bases[index] for index, begin, _ in ranges}
        ends = {str(index): end - self.bases[index] for index, _, end in ranges}
        return (
            spark.read.format("kafka")
            .options(**self.access.spark(), **as_options(READING))
            .option("kafka.bootstrap.servers", self.servers)
            # Under a name of its own, each batch would open connections of its own, for seconds.
            .option("kafka.group.id", self._group)
            .option("assign", to_json({self.topic: [index for index, _, _ in ranges]}))
            .option("startingOffsets", to_json({self.topic: begins}))
            .option("endingOffsets", to_json({self.topic: ends}))
            .load()
        )

    def batch_ranges(self, starts: Mapping[int, int], ends: Mapping[int, int], max_bytes: int) -> list[LogRange]:
        """What a batch of about so many bytes has, in fair shares; what was deleted meanwhile counts for nothing."""
        self._asked, self._there, self._max_bytes = [], [], max_bytes
        waiting = {index: start for index, start in starts.items() if ends[index] > start}
        first = self._positions(EARLIEST, waiting) if waiting else {}
        begins = {index: min(max(start, first[index]), ends[index]) for index, start in waiting.items()}
        lengths = [ends[index] - begin for index, begin in begins.items()]
        shares = fair_shares(lengths, max(self.pace.most(max_bytes), len(lengths)))
        pairs = zip(begins.items(), shares, strict=True)
        bound = self.pace.bound
        return [(index, waiting[index], begin + bound(index, share)) for (index, begin), share in pairs]

    def took(self, row_bytes: int) -> None:  # noqa: ARG002
        """What was read last is stored: its messages tell what may be read next, whatever became of them."""
        if self._reading is not None:
            records, size = self._reading.offsets, self._reading.size(self.record_bytes)
            self.pace.took(_lengths(self._there), size)
            self.learn_size(records, size)
        for index, _, end in self._asked:
            if self._stuck.get(index, end) < end - self.bases[index]:
                del self._stuck[index]
        self._asked, self._there = [], []

    def failed(self) -> None:
        """A batch could not be read, or not be processed: what it had is read by fewer messages at a time."""
        lengths = _lengths(self._there)
        self.pace.failed(lengths)
        if sum(lengths.values()) == 1:
            [(index, begin, _)] = self._there
            self._stuck[index] = begin - self.bases[index]
        self._asked, self._there = [], []

    def learn_size(self, records: int, size: int) -> None:
        """So many records have so many bytes."""
        if records:
            self.record_bytes += _WEIGHT * (size / records - self.record_bytes)

    def lines_of(self, frame: DataFrame) -> DataFrame:
        """What Spark has read, as rows of a log; of what is too large, only the beginning goes on from there."""
        text, size = F.col("value").cast("string"), F.octet_length("value")
        valid, large = F.is_valid_utf8(text), size > MESSAGE_BYTES
        begin = F.make_valid_utf8(F.substring("value", 1, LETTER_BYTES).cast("string"))
        refused = F.format_string(f"has %,d bytes, and {MESSAGE_BYTES:,} are taken: {SEVERAL}", size)
        base = F.element_at(F.array(*map(F.lit, self.bases)), F.col("partition") + 1)
        return frame.select(
            F.col("partition").alias("slice"),
            (base + F.col("offset") + 1).alias("position"),
            F.when(large, begin).when(valid, text).alias("line"),
            F.when(text.isNull(), "has no value")
            .when(large, refused)
            .when(~valid, "is not UTF-8 text")
            .alias("damage"),
        )

    def describe(self) -> DescribedTopic:
        """What Kafka says of the topic; raises UnavailableError if that is nothing."""
        found = self.ask(lambda: self.answer(self.admin.describe_topics(TopicCollection([self.topic]))[self.topic]))
        return DescribedTopic(str(found.topic_id), len(found.partitions))

    def offsets(self, which: int, partitions: Iterable[int]) -> dict[int, int]:
        """The first or the last offsets of some partitions."""
        places = [TopicPartition(self.topic, index, which) for index in partitions]
        return self.ask(partial(self._find_offsets, places)) if places else {}

    def _positions(self, which: int, partitions: Iterable[int]) -> dict[int, int]:
        return {index: self.bases[index] + offset for index, offset in self.offsets(which, partitions).items()}

    def _find_offsets(self, places: list[TopicPartition]) -> dict[int, int]:
        try:
            found = self._consumer.offsets_for_times(places, timeout=CALL_SECONDS)
        except KafkaException as error:
            raise self._explain(error.args[0]) from error
        for place in found:
            if place.error is not None:
                raise self._explain(place.error)
        return {place.partition: place.offset for place in found}

    def ask(self, question: Callable[[], T]) -> T:
        """Asks until there is an answer: who has a topic that is new, or since a restart, a server may not know yet."""
        deadline = time.monotonic() + CALL_SECONDS
        while True:
            try:
                return question()
            except _NotYetError:
                if time.monotonic() > deadline:
                    raise
            self._look_up()
            time.sleep(POLL_SECONDS)

    def _look_up(self) -> None:
        """Finds out anew who has the topic; by itself a client goes on asking as if nobody had been restarted."""
        for client in (self.admin, self._consumer):
            with suppress(KafkaException):
                client.list_topics(self.topic, timeout=_LOOK_UP_SECONDS)

    def answer(self, asked: Future[T]) -> T:
        """What Kafka says; raises UnavailableError if it does not."""
        try:
            return asked.result(CALL_SECONDS)
        except KafkaException as error:
            failure: KafkaError = error.args[0]
            if failure.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                raise ExistsError from error
            raise self._explain(failure) from error
        except TimeoutError as error:
            raise UnavailableError(f"Kafka at {self.servers} does not answer{self._why()}; see that it runs") from error

    def _explain(self, failure: KafkaError) -> UnavailableError:
        reason = f"Kafka at {self.servers}, topic {self.topic}: {failure.str()}{self._why()}"
        return (_NotYetError if failure.code() in _NOT_YET else UnavailableError)(reason)

    def _why(self) -> str:
        """What the client complains of, such as a certificate or a password; it tells whoever polls."""
        self.admin.poll(0)
        return f" ({self._trouble})" if self._trouble else ""

    def _note_trouble(self, error: KafkaError) -> None:
        self._trouble = error.str()


def _lengths(ranges: Sequence[LogRange]) -> dict[int, int]:
    """How much of each slice these have."""
    return {index: end - begin for index, begin, end in ranges}


class ExistsError(Exception):
    """There is such a topic."""


class _NotYetError(UnavailableError):
    """A server has not heard of the topic, or of who has it."""


def as_options(options: Mapping[str, str]) -> dict[str, str]:
    """As the connector wants to have what is Kafka's."""
    return {f"kafka.{name}": value for name, value in options.items()}


def to_json(value: Any) -> str:
    """As Spark's options have it."""
    return msgspec.json.encode(value).decode()
