"""The logs of feeds in Kafka: those that publishers fill through us, and topics that others fill.

What is appended to one of ours is with all in-sync replicas when it is acknowledged.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.feeds.access import OPEN, KafkaAccess
from tocsin.data.feeds.checking import check_lines
from tocsin.data.feeds.sliced_topic import CALL_SECONDS, EARLIEST, LATEST, POLL_SECONDS, QUIET, ExistsError
from tocsin.data.feeds.source import SCHEMA, ranges_between
from tocsin.data.feeds.topics import FeedTopic
from tocsin.data.store import Topics
from tocsin.errors import ConflictError, UnavailableError
from tocsin.log import get_logger
from tocsin.schema.definitions import Dataset, Feed
from tocsin.schema.records import MAX_RECORD_BYTES

log = get_logger(__name__)

_DELIVERY_SECONDS: Final = 10.0
_RELEASE_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.1
# Nobody else writes to ours, but for a data cluster that was replaced and has not noticed yet.
_LOOK_AT_OURS_SECONDS: Final = 1.0
# What Kafka adds to a message that has nothing but a value is about a third of this.
_FRAME_BYTES: Final = 256
_BATCH_BYTES: Final = 1_000_000
_LARGEST: Final = "max.message.bytes"
# Kept for ever, for it is we who release what the dataset has.
_KEPT: Final = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    _LARGEST: str(MAX_RECORD_BYTES + _FRAME_BYTES),
}


class KafkaLog(FeedTopic):
    """The log of one feed in a topic of our own. One thread may append while others ask and release.

    What can go wrong, beside what can with any topic: Kafka does not acknowledge in time. Then ``append`` raises
    :class:`UnavailableError`; records of that call may be there or not, and may be sent again.
    """

    def __init__(
        self,
        servers: str,
        prefix: str,
        feed: Feed,
        topics: Topics,
        read: Sequence[int],
        access: KafkaAccess = OPEN,
    ) -> None:
        super().__init__(servers, f"{prefix}.{feed.name}", feed, topics, read, access)
        self.records = 0
        self.largest_record = MAX_RECORD_BYTES
        self._producer: Producer | None = None
        self._released = time.monotonic()

    def open(self) -> Self:
        """Makes the topic if it is missing. What a topic has that is not known as the feed's is not for its dataset."""
        made = self.admin.create_topics([NewTopic(self.topic, self.feed.slices, config=_KEPT)])[self.topic]
        with suppress(ExistsError):
            self.answer(made)
        self.find(LATEST)
        self.largest_record = min(self._largest_message() - _FRAME_BYTES, MAX_RECORD_BYTES)
        self._producer = self._connect()
        self.keep_looking(_LOOK_AT_OURS_SECONDS)
        return self

    def close(self) -> None:
        """Lets go of Kafka."""
        super().close()
        self._producer = None

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> list[int]:
        """Returns the new ends, once all in-sync replicas have the records of each slice."""
        if self._producer is None:
            raise UnavailableError(f"the log of feed {self.feed.name} is closed: try again when its server has started")
        outcome = _Outcome(sum(len(records) for records in batches.values()))
        for index, records in batches.items():
            for record in records:
                self._produce(self._producer, index, record, outcome)
        self._producer.flush(_DELIVERY_SECONDS + CALL_SECONDS)
        for partition, offset in outcome.reached.items():
            self.note(partition, offset)
        if outcome.waiting or outcome.error is not None:
            # Of one that is in doubt nothing more may come, or it would come after what is sent again.
            self._producer.purge()
            self._producer = self._connect()
            raise self._refusal(outcome.error)
        self._count(batches)
        return self.ends()

    def release(self, positions: Sequence[int]) -> None:
        """Lets Kafka delete what the dataset has, every now and then."""
        if time.monotonic() - self._released < _RELEASE_SECONDS:
            return
        self._released = time.monotonic()
        offsets = [max(position - base, 0) for position, base in zip(positions, self.bases, strict=True)]
        self.admin.delete_records(
            [TopicPartition(self.topic, partition, offset) for partition, offset in enumerate(offsets)],
            request_timeout=CALL_SECONDS,
        )

    def remove(self) -> None:
        """The feed is no more, and everything in its log is stored."""
        try:
            self.answer(self.admin.delete_topics([self.topic])[self.topic])
        except UnavailableError as error:
            # It is no feed's any more: one of that name begins after what is there.
            log.warning("a topic that is no longer needed stays", topic=self.topic, reason=str(error))

    def _largest_message(self) -> int:
        """What the topic takes. One record that it does not would take those with it that are sent together."""
        topic = ConfigResource(ResourceType.TOPIC, self.topic)
        try:
            found = self.answer(self.admin.describe_configs([topic], request_timeout=CALL_SECONDS)[topic])
            return int(found[_LARGEST].value)
        except (UnavailableError, KeyError) as error:
            log.warning(
                "a topic does not tell what it takes", topic=self.topic, assumed=_BATCH_BYTES, reason=str(error)
            )
            return _BATCH_BYTES

    def _connect(self) -> Producer:
        most = self.largest_record + _FRAME_BYTES
        return Producer(
            {
                **QUIET,
                **self.access.client(),
                "bootstrap.servers": self.servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "delivery.timeout.ms": int(_DELIVERY_SECONDS * 1000),
                "queue.buffering.max.messages": 1_000_000,
                "message.max.bytes": most,
                "batch.size": min(_BATCH_BYTES, most),
            }
        )

    def _produce(self, producer: Producer, index: int, record: bytes, outcome: _Outcome) -> None:
        while True:
            try:
                producer.produce(self.topic, record, partition=index, on_delivery=outcome.note)
            except BufferError:
                producer.poll(POLL_SECONDS)
            except KafkaException as error:
                outcome.note(error.args[0], None)
                return
            else:
                return

    def _count(self, batches: Mapping[int, Sequence[bytes]]) -> None:
        records = sum(len(records) for records in batches.values())
        size = sum(len(record) for records in batches.values() for record in records)
        self.records += records
        self.learn_size(records, size)

    def _refusal(self, error: KafkaError | None) -> UnavailableError:
        reason = error.str() if error else "no answer in time"
        return UnavailableError(
            f"Kafka at {self.servers} has not acknowledged this ({reason}); it may be there or not: publish it again"
        )


class ForeignLog(FeedTopic):
    """A topic that others produce to, which fills a feed's dataset: everything it has, and what it gets.

    What does not fit the dataset is damage, and goes to the dead letters.
    """

    def __init__(
        self,
        servers: str,
        feed: Feed,
        dataset: Dataset,
        topics: Topics,
        read: Sequence[int],
        access: KafkaAccess = OPEN,
    ) -> None:
        super().__init__(servers, feed.topic, feed, topics, read, access)
        self.records = 0
        self.largest_record = MAX_RECORD_BYTES
        self._dataset = dataset

    def open(self) -> Self:
        """Finds the topic, and looks how far it goes from then on."""
        self.find(EARLIEST)
        self.keep_looking(_LOOK_SECONDS)
        return self

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> list[int]:  # noqa: ARG002
        """Refused: others fill it."""
        raise ConflictError(f"feed {self.feed.name} is filled from the topic {self.topic} of Kafka: publish there")

    def release(self, positions: Sequence[int]) -> None:
        """How long a topic keeps what it has is for its owners to say."""

    def remove(self) -> None:
        """The topic is not ours."""

    def stream(self, spark: SparkSession, positions: Sequence[int], max_bytes: int) -> DataFrame:
        """The topic from these positions on, each record checked as a publication is."""
        return self._check(super().stream(spark, positions, max_bytes))

    def batch(self, spark: SparkSession, starts: Sequence[int], ends: Sequence[int]) -> DataFrame:
        """What lies between these positions, each record checked as a publication is."""
        lines = self.read(spark, ranges_between(starts, ends), ends=True)
        return self._check(lines, self.most_bytes)

    def _check(self, lines: DataFrame, most: int | None = None) -> DataFrame:
        return lines.mapInArrow(check_lines(self._dataset, self.feed.sliced_by, most), SCHEMA)


class _Outcome:
    """What became of the records of one call."""

    def __init__(self, records: int) -> None:
        self.waiting = records
        self.error: KafkaError | None = None
        self.reached: dict[int, int] = {}

    def note(self, error: KafkaError | None, message: Message | None) -> None:
        """Kafka's word on one of them."""
        self.waiting -= 1
        if error is not None:
            self.error = error
        elif message is not None:
            partition, offset = message.partition() or 0, message.offset() or 0
            self.reached[partition] = max(self.reached.get(partition, 0), offset)
