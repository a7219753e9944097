"""Topics that others fill: transactions that came to nothing, what is deleted before it is read, and large records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from pyspark.sql import DataFrame, SparkSession

from tests.data.feeds.ingesting import UNKEYED, Ingesting, Make
from tests.data.nodes.sharing import FUNCTIONS, Sharing, on_spark
from tests.kafka import KafkaServer
from tests.waiting import until
from tocsin.data.feeds import sliced_topic
from tocsin.data.feeds.kafka import ForeignLog
from tocsin.data.feeds.pace import RecordPace
from tocsin.data.nodes.processing import SliceProcessing
from tocsin.data.nodes.writing import WrittenRows
from tocsin.data.store import Store
from tocsin.errors import UnavailableError
from tocsin.schema.definitions import Feed


class Others:
    """Somebody who fills a topic of two partitions, and knows nothing of us."""

    def __init__(self, kafka: KafkaServer, store: Store) -> None:
        self.kafka, self.store, self.topic = kafka, store, kafka.prefix()
        kafka.create_topic(self.topic, 2)
        large = {"message.max.bytes": 8 << 20}
        self._producer = Producer({"bootstrap.servers": kafka.servers, "log_level": 0, **large})

    def produce(self, *numbers: int, partition: int = 0, name: str = "r") -> None:
        """Records with these numbers."""
        self.produce_messages(*(line(number, name) for number in numbers), partition=partition)

    def produce_messages(self, *messages: bytes, partition: int = 0) -> None:
        """Messages as they are."""
        for message in messages:
            self._producer.produce(self.topic, message, partition=partition)
        assert self._producer.flush(60) == 0

    def transaction(self, *numbers: int, kept: bool) -> None:
        """The same in one transaction, which is committed, or taken back."""
        about = {"bootstrap.servers": self.kafka.servers, "log_level": 0, "transactional.id": self.topic}
        producer = Producer(about)
        producer.init_transactions(60)
        producer.begin_transaction()
        for number in numbers:
            producer.produce(self.topic, line(number), partition=0)
        assert producer.flush(60) == 0
        if kept:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)

    def delete(self, partition: int, before: int) -> None:
        """As a topic does that keeps records for a while only."""
        admin = AdminClient({"bootstrap.servers": self.kafka.servers, "log_level": 0})
        for asked in admin.delete_records([TopicPartition(self.topic, partition, before)]).values():
            asked.result(60)

    def fill(self, ingesting: Ingesting) -> None:
        """Has the feed filled from here."""
        ingesting.log.close()
        function = ingesting.feed.processed_by
        ingesting.feed = Feed("reports", "Reports", "id", 2, topic=self.topic, processed_by=function)
        log = ForeignLog(self.kafka.servers, ingesting.feed, ingesting.dataset, self.store.topics, [0, 0])
        ingesting.log = log.open()

    def share(self, directory: Path, **options: Any) -> Sharing:
        """The same for nodes."""
        sharing = Sharing(directory, UNKEYED, slices=2, **options)
        sharing.log.close()
        function = sharing.feed.processed_by
        sharing.feed = Feed("reports", "Reports", "id", 2, topic=self.topic, processed_by=function)
        log = ForeignLog(self.kafka.servers, sharing.feed, sharing.dataset, self.store.topics, sharing.store.markers())
        sharing.log = log.open()
        sharing.open()
        return sharing


def line(number: int, name: str = "r") -> bytes:
    return json.dumps({"id": f"{name}{number}", "value": number}).encode()


@pytest.fixture
def others(kafka: KafkaServer, tmp_path: Path) -> Iterator[Others]:
    with Store(tmp_path) as store:
        yield Others(kafka, store)


def test_what_a_transaction_has_taken_back_is_not_stored_and_nothing_waits_for_it(others: Others, make: Make) -> None:
    others.transaction(1, 2, kept=True)
    others.transaction(3, 4, kept=False)
    ingesting = make(UNKEYED, slices=2)
    others.fill(ingesting)
    ingesting.start()
    ingesting.drain()
    assert [row["value"] for row in ingesting.rows()] == [1, 2]
    ingesting.reopen()
    others.transaction(5, kept=True)
    ingesting.start()
    until(lambda: len(ingesting.rows()) == 3)
    ingesting.drain()
    assert [row["value"] for row in ingesting.rows()] == [1, 2, 5]
    assert ingesting.letters() == []


def test_nodes_do_not_process_what_a_transaction_has_taken_back(
    others: Others, spark: SparkSession, tmp_path: Path
) -> None:
    others.transaction(1, 2, kept=True)
    others.transaction(3, 4, kept=False)
    sharing = others.share(tmp_path / "shared")
    sharing.commit(on_spark(spark, sharing).process(sharing.starts()))
    assert sharing.rows() == {"r1": 1, "r2": 2}
    assert sharing.store.markers() == sharing.log.ends()
    sharing.log.close()


def test_what_a_topic_deleted_before_it_was_read_is_one_dead_letter_and_the_rest_goes_on(
    others: Others, make: Make
) -> None:
    others.produce(0, 1)
    ingesting = make(UNKEYED, slices=2)
    others.fill(ingesting)
    ingesting.start()
    ingesting.drain()
    ingesting.reopen()
    others.produce(*range(2, 9))
    others.produce(20, partition=1)
    others.delete(0, before=6)
    ingesting.start()
    until(lambda: len(ingesting.rows()) == 6)
    ingesting.drain()
    assert sorted(row["value"] for row in ingesting.rows()) == [0, 1, 6, 7, 8, 20]
    (letter,) = ingesting.letters()
    assert letter["slice"] == 0
    assert f"the topic {others.topic} has deleted offsets 2 to 5 of partition 0" in letter["reason"]


@pytest.mark.parametrize("left", [3, 0])
def test_nodes_pass_over_what_was_deleted(others: Others, spark: SparkSession, tmp_path: Path, left: int) -> None:
    sharing = others.share(tmp_path / "shared")
    others.produce(*range(9))
    others.produce(20, partition=1)
    others.delete(0, before=9 - left)
    node = on_spark(spark, sharing)
    sharing.commit(node.process(sharing.starts()))
    assert sharing.rows() == {"r20": 20} | {f"r{number}": number for number in range(9 - left, 9)}
    (letter,) = sharing.letters.read(columns=["reason"]).to_pylist()
    assert f"offsets 0 to {8 - left} of partition 0" in letter["reason"]
    assert node.process(sharing.starts()).parts == ()
    sharing.log.close()


def test_a_node_warms_up_also_where_a_topic_has_nothing_and_again_where_that_failed(
    others: Others, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharing = others.share(tmp_path / "shared")
    node, written = on_spark(spark, sharing), list[WrittenRows]()
    write, failing = node._write, [UnavailableError("no executor")]

    def noted(rows: DataFrame) -> list[WrittenRows]:
        if failing:
            raise failing.pop()
        written.extend(found := write(rows))
        return found

    monkeypatch.setattr(node, "_write", noted)
    for _ in range(3):
        node.prepare([0])
    assert [part.counts for part in written] == [{0: 1}]
    assert not failing
    sharing.log.close()


def test_a_topic_of_large_records_is_read_a_few_at_a_time(others: Others, spark: SparkSession, tmp_path: Path) -> None:
    others.produce(*range(900), name="x" * 4_000)
    sharing = others.share(tmp_path / "shared", max_batch_bytes=100_000)
    node, sizes = on_spark(spark, sharing), []
    while (batch := node.process(sharing.starts())).parts:
        sharing.commit(batch)
        sizes.append(sum(part.records for part in batch.parts))
    assert sum(sizes) == 900
    assert sizes[0] <= 64
    assert max(sizes[1:-1]) <= 30
    sharing.log.close()


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message may have 2 KiB, so that a slice has at most 64 times as much in a batch of more than 64 messages."""
    monkeypatch.setattr(sliced_topic, "MESSAGE_BYTES", 2 << 10)


@pytest.mark.usefixtures("small_bounds")
def test_large_messages_after_many_small_ones_are_read_a_few_at_a_time(
    others: Others, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    others.produce(*range(500))
    others.produce(*range(500, 800), name="x" * 1_000)
    ingesting = make(UNKEYED, slices=2, max_batch_bytes=100_000, retry_after_seconds=600)
    others.fill(ingesting)
    batches = ingested_offsets(ingesting, monkeypatch)
    # Told to be started again it would wait for ten minutes: nothing has gone wrong.
    assert len(ingesting.rows()) == 800
    assert batches[:3] == [64, 128, 256]
    assert 4 in batches
    assert max(batches[batches.index(4) :]) <= 100
    assert ingesting.letters() == []


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("by_executors", [False, True])
def test_nodes_read_large_messages_after_many_small_ones_a_few_at_a_time(
    others: Others, spark: SparkSession, tmp_path: Path, by_executors: bool
) -> None:
    others.produce(*range(500))
    others.produce(*range(500, 800), name="x" * 1_000)
    sharing = others.share(tmp_path / "shared", max_batch_bytes=100_000)
    node = SliceProcessing(spark, sharing.shared, tmp_path / "ids", by_executors=by_executors)
    batches = offsets_of_batches(sharing, node)
    assert (sum(batches), len(sharing.rows())) == (800, 800)
    assert max(batches) > 64
    assert 4 in batches
    assert max(batches[batches.index(4) :]) <= 100
    sharing.log.close()


def offsets_of_batches(sharing: Sharing, node: SliceProcessing) -> list[int]:
    """How many offsets the batches of a node have, until everything is stored."""
    found = []
    while (batch := node.process(sharing.starts())).parts:
        sharing.commit(batch)
        found.append(sum(part.end - part.begin for part in batch.parts))
    return found


def ingested_offsets(ingesting: Ingesting, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The same of an ingestion."""
    found, batch = [], ingesting.log.batch

    def noted(spark: SparkSession, starts: Sequence[int], ends: Sequence[int]) -> DataFrame:
        found.append(sum(ends) - sum(starts))
        return batch(spark, starts, ends)

    monkeypatch.setattr(ingesting.log, "batch", noted)
    ingesting.start()
    ingesting.drain()
    return found


def hundreds(count: int) -> list[bytes]:
    """Messages of one size, each a list of a hundred records."""
    return [
        json.dumps([{"id": f"r{100 * message + n:06d}", "value": 0} for n in range(100)]).encode()
        for message in range(count)
    ]


def test_messages_with_many_records_each_are_counted_as_messages(
    others: Others, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = hundreds(600)
    others.produce_messages(*messages)
    most = 300 * len(messages[0])
    ingesting = make(UNKEYED, slices=2, max_batch_bytes=most)
    others.fill(ingesting)
    batches = ingested_offsets(ingesting, monkeypatch)
    assert (sum(batches), len(ingesting.rows())) == (600, 60_000)
    assert max(batches) * len(messages[0]) <= most
    assert all(later <= 2 * before for before, later in pairwise(batches))


def test_nodes_count_messages_with_many_records_each_as_messages(
    others: Others, spark: SparkSession, tmp_path: Path
) -> None:
    messages = hundreds(600)
    others.produce_messages(*messages)
    most = 300 * len(messages[0])
    sharing = others.share(tmp_path / "shared", max_batch_bytes=most)
    batches = offsets_of_batches(sharing, on_spark(spark, sharing))
    assert (sum(batches), len(sharing.rows())) == (600, 60_000)
    assert max(batches) * len(messages[0]) <= most
    assert all(later <= 2 * before for before, later in pairwise(batches))
    sharing.log.close()


def test_batches_grow_whatever_a_function_leaves_of_them(
    others: Others, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    others.produce(*range(4_000))
    ingesting = make(UNKEYED, slices=2, processed_by=f"{FUNCTIONS}:tenth", functions=[FUNCTIONS])
    others.fill(ingesting)
    batches = ingested_offsets(ingesting, monkeypatch)
    assert batches == [64, 128, 256, 512, 1024, 2016]
    assert len(ingesting.rows()) == 400


def test_batches_of_nodes_grow_whatever_a_function_leaves_of_them(
    others: Others, spark: SparkSession, tmp_path: Path
) -> None:
    others.produce(*range(4_000))
    sharing = others.share(tmp_path / "shared", function=f"{FUNCTIONS}:tenth")
    batches = offsets_of_batches(sharing, on_spark(spark, sharing))
    assert max(batches) > 256
    assert (sum(batches), len(sharing.rows())) == (4_000, 400)
    sharing.log.close()


def test_a_message_that_is_too_large_is_one_dead_letter_and_the_others_are_stored(others: Others, make: Make) -> None:
    kafka_takes(others, 8 << 20)
    large = b'[{"id": "r5", "value": "' + b"\xc3\xbc" * (3 << 20) + b'"}]'
    others.produce_messages(line(1), large, b"[" + b"{}," * 10_000 + b"{}]", line(2))
    ingesting = make(UNKEYED, slices=2)
    others.fill(ingesting)
    ingesting.start()
    ingesting.drain()
    assert [row["id"] for row in ingesting.rows()] == ["r1", "r2"]
    first, second = ingesting.letters()
    assert first["reason"] == (
        f"has {len(large):,} bytes, and 4,194,304 are taken: send its records in several messages"
    )
    assert large.decode().startswith(first["line"][:-1])
    assert 65_000 < len(first["line"].encode()) <= 65_540
    assert second["reason"].startswith("has 10,001 records, and 10,000 are taken")


def test_at_nodes_a_list_with_bad_records_is_one_dead_letter(
    others: Others, spark: SparkSession, tmp_path: Path
) -> None:
    kafka_takes(others, 8 << 20)
    others.produce_messages(b'[{"id": "r1", "value": 1}, {"value": "x"}, 7]', b"x" * (5 << 20), line(2))
    sharing = others.share(tmp_path / "shared")
    sharing.commit(on_spark(spark, sharing).process(sharing.starts()))
    assert sharing.rows() == {"r1": 1, "r2": 2}
    found, large = (row["reason"] for row in sharing.letters.read(columns=["reason"]).to_pylist())
    assert found.startswith("2 of its 3 records are refused: record 2: ")
    assert large.startswith("has 5,242,880 bytes")
    sharing.log.close()


def kafka_takes(others: Others, size: int) -> None:
    """The topic has messages of up to so many bytes, as its owners like."""
    admin = AdminClient({"bootstrap.servers": others.kafka.servers, "log_level": 0})
    wanted = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, others.topic, incremental_configs=[wanted])
    admin.incremental_alter_configs([topic])[topic].result(60)


def test_a_message_that_cannot_be_processed_keeps_only_what_is_behind_it_waiting_until_it_is_deleted(
    others: Others, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    others.produce(*range(50))
    others.produce(*range(100, 150), partition=1)
    ingesting = make(UNKEYED, slices=2)
    others.fill(ingesting)
    batch, poison = ingesting.log.batch, 37

    def poisoned(spark: SparkSession, starts: Sequence[int], ends: Sequence[int]) -> DataFrame:
        # Before it is looked what is there: what is not deleted yet is not healed.
        poisonous = max(starts[0], first[0]) <= poison < ends[0]
        found = batch(spark, starts, ends)
        if poisonous:
            raise RuntimeError("this cannot be read")
        return found

    first = [0]
    monkeypatch.setattr(ingesting.log, "batch", poisoned)
    ingestion = ingesting.start()
    stuck = f"offset {poison} of partition 0"
    until(lambda: stuck in ingesting.log.damage())
    until(lambda: len(ingesting.rows()) == poison + 50)
    assert "slice 0 is left out for now: this cannot be read" in until(lambda: ingestion.problem)
    others.produce(150, partition=1)
    until(lambda: len(ingesting.rows()) == poison + 51)
    others.delete(0, before=poison + 1)
    first[0] = poison + 1
    ingesting.drain()
    assert {row["value"] for row in ingesting.rows()} == {*range(50), *range(100, 151)} - {poison}
    (letter,) = ingesting.letters()
    assert "has deleted offsets 37 to 37 of partition 0" in letter["reason"]
    until(lambda: (ingestion.problem, ingesting.log.damage()) == ("", ""))


def test_a_batch_has_at_most_twice_as_many_records_as_one_before() -> None:
    pace = RecordPace(300.0)
    assert pace.most(1 << 24) == 64
    for records in (64, 128, 256):
        pace.took({0: records}, records * 100)
        assert pace.most(1 << 24) == 2 * records
    pace.took({0: 1000, 1: 1000}, 2000 * 4_000)
    assert pace.most(400_000) == 100
    pace.took({}, 0)
    assert pace.most(1) == 1


def test_what_failed_is_read_by_fewer_at_a_time_down_to_one_whatever_the_others_have() -> None:
    pace, sizes = RecordPace(300.0), []
    pace.took({0: 5000, 1: 5000}, 10_000 * 100)
    size = pace.bound(0, 5000)
    while size > 1:
        sizes.append(size)
        pace.failed({0: size})
        assert pace.most(1 << 24) == 64
        # The others grow meanwhile, and the one that failed does not.
        pace.took({1: 10_000}, 10_000 * 100)
        size = pace.bound(0, 5000)
    assert sizes == [5000, 4]
    for size in (1, 2, 4, 8, 16, 32):
        assert (pace.bound(0, 5000), pace.bound(1, 5000)) == (size, 5000)
        pace.took({0: size}, size * 100)
    pace.took({0: 64}, 6400)
    assert pace.bound(0, 5000) == 5000
