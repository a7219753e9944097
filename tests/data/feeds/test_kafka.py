"""The log in Kafka: what is acknowledged is there, positions only grow, and whatever is away is told."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.kafka import KafkaServer
from tests.waiting import until
from tocsin.data.feeds.admission import Admission
from tocsin.data.feeds.kafka import ForeignLog, KafkaLog
from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.logs import find_log
from tocsin.data.feeds.sliced_topic import read_address
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.table import Table
from tocsin.data.pipeline import Pipeline
from tocsin.data.store import KnownTopic, Store
from tocsin.errors import ConflictError, SettingsError, UnavailableError
from tocsin.schema.arrow import record_schema
from tocsin.schema.definitions import Column, Dataset, DatasetKind, Feed
from tocsin.schema.records import MAX_RECORD_BYTES
from tocsin.schema.types import parse_type
from tocsin.settings import FeedsSettings

FEED = Feed("orders", "Orders", "id", 2)
ORDERS = Dataset("Orders", DatasetKind.APPEND, (Column("id", parse_type("STRING")),), "id")
OpenLog = Callable[..., KafkaLog]


@pytest.fixture
def prefix(kafka: KafkaServer) -> str:
    return kafka.prefix()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as store:
        yield store


@pytest.fixture
def open_kafka(kafka: KafkaServer, prefix: str, store: Store) -> Iterator[OpenLog]:
    """Opens the log of this test, each time as another process would."""
    with ExitStack() as stack:

        def opened(*read: int, feed: Feed = FEED) -> KafkaLog:
            made = KafkaLog(kafka.servers, prefix, feed, store.topics, read or (0,) * feed.slices).open()
            stack.callback(made.close)
            return made

        yield opened


def messages(kafka: KafkaServer, topic: str, partition: int, count: int) -> list[bytes]:
    """The first so many records of a partition."""
    consumer = Consumer({"bootstrap.servers": kafka.servers, "group.id": "test", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[bytes] = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None, f"only {found}"
        assert message.error() is None
        found.append(message.value() or b"")
    consumer.close()
    return found


def add_partitions(kafka: KafkaServer, topic: str, count: int) -> None:
    """As the owners of a topic do, so that it has so many."""
    admin = AdminClient({"bootstrap.servers": kafka.servers, "log_level": 0})
    admin.create_partitions([NewPartitions(topic, count)])[topic].result()


def open_pipeline(kafka: KafkaServer, prefix: str, store: Store, directory: Path) -> Pipeline:
    """The feed at work, but that nothing is stored yet."""
    lake = DirectoryFolder(directory / "lake")
    table = Table(lake.below("orders"), record_schema(ORDERS.columns))
    settings = FeedsSettings(log=f"kafka://{kafka.servers}/{prefix}")
    nothing, arriving = (lambda _: None), (lambda _, __: nullcontext())
    return Pipeline(FEED, ORDERS, table, directory, lake, settings, store.topics, nothing, arriving)


def produce(kafka: KafkaServer, topic: str, partition: int, count: int) -> None:
    """So many records of others."""
    producer = Producer({"bootstrap.servers": kafka.servers, "log_level": 0})
    for number in range(count):
        producer.produce(topic, json.dumps({"id": f"{partition}-{number}"}).encode(), partition=partition)
    assert producer.flush(60) == 0


def acknowledged(log: KafkaLog, batches: dict[int, list[bytes]]) -> bool:
    """Whether it is this time."""
    try:
        log.append(batches)
    except UnavailableError:
        return False
    return True


def test_what_is_appended_is_there_in_its_slice_and_order(kafka: KafkaServer, open_kafka: OpenLog) -> None:
    log = open_kafka()
    assert log.ends() == [0, 0]
    assert log.append({0: [b"a", b"b"], 1: [b"c"]}) == [2, 1]
    assert log.append({1: [b"d"]}) == [2, 2]
    assert log.records == 4
    assert messages(kafka, log.topic, 0, 2) == [b"a", b"b"]
    assert messages(kafka, log.topic, 1, 2) == [b"c", b"d"]
    assert open_kafka(1, 0).ends() == [2, 2]


def test_positions_go_on_after_those_of_the_log_before(open_kafka: OpenLog) -> None:
    log = open_kafka(5_000, 70)
    assert log.ends() == [5_000, 70]
    assert log.append({1: [b"a"]}) == [5_000, 71]
    assert open_kafka(5_000, 71).append({0: [b"b"]}) == [5_001, 71]


def test_what_a_data_cluster_that_was_replaced_still_appends_is_found_by_the_next(open_kafka: OpenLog) -> None:
    replaced, log = open_kafka(), open_kafka()
    replaced.append({0: [b"late"]})
    waiting = threading.Thread(target=log.wait_for_more, args=([0, 0], lambda: False), daemon=True)
    waiting.start()
    until(lambda: not waiting.is_alive())
    assert log.ends() == [1, 0]
    replaced.append({1: [b"later"]})
    until(lambda: log.ends() == [1, 1])


async def test_a_feed_is_not_drained_while_there_is_what_the_data_cluster_before_has_appended(
    kafka: KafkaServer, prefix: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.data.feeds.kafka._LOOK_AT_OURS_SECONDS", 3600.0)
    pipeline = open_pipeline(kafka, prefix, store, tmp_path)
    replaced = KafkaLog(kafka.servers, prefix, FEED, store.topics, [0, 0]).open()
    replaced.append({0: [b'{"id":"late"}']})
    assert pipeline.backlog == 0
    with pytest.raises(ConflictError, match="bytes that its dataset has not"):
        pipeline.drain(0)
    published = await pipeline.admission.publish(b'{"id":"a"}', "application/json")
    assert published.accepted == 1
    assert sum(pipeline.log.ends()) == 2
    replaced.close()
    pipeline.stop()


async def test_a_feed_whose_log_does_not_say_how_far_it_goes_is_not_drained(
    kafka: KafkaServer, prefix: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = open_pipeline(kafka, prefix, store, tmp_path)

    def away(log: KafkaLog) -> None:
        raise UnavailableError(f"no answer about {log.topic}")

    with monkeypatch.context() as patched:
        patched.setattr(KafkaLog, "look", away)
        with pytest.raises(UnavailableError, match="no answer"):
            pipeline.drain(0)
    assert (await pipeline.admission.publish(b'{"id":"a"}', "application/json")).accepted == 1
    pipeline.stop()


def test_a_topic_that_is_nobodys_is_taken_from_its_end_on(open_kafka: OpenLog, store: Store) -> None:
    open_kafka().append({0: [b"of a feed that was dropped"]})
    store.definitions.put(FEED)
    store.definitions.remove(Feed, "orders")
    log = open_kafka(10, 10)
    assert log.ends() == [10, 10]
    assert log.append({0: [b"a"]}) == [11, 10]
    assert log.damage() == ""


def test_a_topic_made_anew_is_told_and_read_from_its_beginning(kafka: KafkaServer, open_kafka: OpenLog) -> None:
    log = open_kafka()
    log.append({0: [b"a", b"b"], 1: [b"c"]})
    log.remove()
    admin = AdminClient({"bootstrap.servers": kafka.servers, "log_level": 0})
    until(lambda: log.topic not in admin.list_topics().topics)
    anew = open_kafka(1, 1)
    assert "was made anew" in anew.damage()
    assert anew.append({0: [b"d"]}) == [2, 1]
    assert open_kafka(1, 1).damage() == ""


def test_while_kafka_is_away_nothing_is_acknowledged_and_all_goes_on_when_it_is_back(
    kafka: KafkaServer, open_kafka: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_kafka()
    log.append({0: [b"a"]})
    kafka.stop(signal.SIGKILL)
    try:
        with monkeypatch.context() as impatient:
            for name in (
                "kafka._DELIVERY_SECONDS",
                "kafka.CALL_SECONDS",
                "topics.CALL_SECONDS",
                "sliced_topic.CALL_SECONDS",
            ):
                impatient.setattr(f"tocsin.data.feeds.{name}", 1.0)
            with pytest.raises(UnavailableError, match=r"has not acknowledged this .*: publish it again"):
                log.append({0: [b"b"], 1: [b"c"]})
            assert not log.has_room()
            with pytest.raises(UnavailableError, match="Kafka at"):
                open_kafka()
    finally:
        kafka.start()
    # Asked first, as whoever follows a topic does: what it goes to is told by a server that has begun anew.
    log.look()
    assert log.ends()[0] >= 1
    until(lambda: acknowledged(log, {0: [b"b"], 1: [b"c"]}))
    assert set(messages(kafka, log.topic, 0, 2)) == {b"a", b"b"}
    assert log.has_room()


async def test_a_record_that_is_as_large_as_may_be_is_taken(open_kafka: OpenLog) -> None:
    log = open_kafka()
    assert log.largest_record == MAX_RECORD_BYTES
    admission = Admission(FEED, ORDERS, log, FeedsSettings(), lambda: 0)
    largest = json.dumps({"id": "x" * (MAX_RECORD_BYTES - 9)}, separators=(",", ":")).encode()
    assert len(largest) == MAX_RECORD_BYTES
    published = await asyncio.gather(
        *(admission.publish(body, "application/json") for body in (largest, b'{"id":"a"}'))
    )
    assert [each.accepted for each in published] == [1, 1]


async def test_a_record_that_a_topic_does_not_take_harms_nobody_else(
    kafka: KafkaServer, prefix: str, open_kafka: OpenLog
) -> None:
    small = Feed("small", "Orders", "id", 2)
    admin = AdminClient({"bootstrap.servers": kafka.servers, "log_level": 0})
    topic = NewTopic(f"{prefix}.small", 2, config={"max.message.bytes": "20000"})
    admin.create_topics([topic])[topic.topic].result(30)
    log = open_kafka(feed=small)
    assert log.largest_record < 20_000
    admission = Admission(small, ORDERS, log, FeedsSettings(), lambda: 0)
    bodies = [json.dumps([{"id": f"{n}{'x' * 900}"} for n in range(100)]).encode(), b'{"id": "%s"}' % (b"y" * 20_000)]
    many, large = await asyncio.gather(*(admission.publish(body, "application/json") for body in bodies))
    assert (many.accepted, large.accepted) == (100, 0)
    assert "bytes" in large.refused[0].reason


def test_fewer_partitions_than_slices_are_refused(kafka: KafkaServer, prefix: str, open_kafka: OpenLog) -> None:
    kafka.create_topic(f"{prefix}.orders", 1)
    with pytest.raises(ConflictError, match="has 1 partitions, and feed orders has 2 slices: add partitions to it, or"):
        open_kafka()


def test_partitions_that_somebody_adds_to_one_of_ours_stay_empty(kafka: KafkaServer, open_kafka: OpenLog) -> None:
    log = open_kafka()
    log.append({1: [b"a"]})
    add_partitions(kafka, log.topic, 3)
    again = open_kafka()
    assert again.append({0: [b"b"]}) == [1, 1]
    assert again.damage() == ""


def test_what_the_dataset_has_is_deleted_in_kafka(
    kafka: KafkaServer, open_kafka: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.data.feeds.kafka._RELEASE_SECONDS", 0.0)
    log = open_kafka(100, 100)
    log.append({0: [b"a", b"b", b"c"]})
    log.release([102, 100])
    consumer = Consumer({"bootstrap.servers": kafka.servers, "group.id": "test"})
    until(lambda: consumer.get_watermark_offsets(TopicPartition(log.topic, 0)) == (2, 3))
    consumer.close()


def test_the_backlog_is_told_in_bytes_as_far_as_is_known(open_kafka: OpenLog) -> None:
    log = open_kafka()
    log.append({0: [b"x" * 1000] * 50})
    assert log.backlog([50, 0]) == 0
    assert 20 * 300 < log.backlog([30, 0]) <= 20 * 1000


def test_a_feed_does_not_leave_records_behind_in_the_log_it_had(
    kafka: KafkaServer, prefix: str, store: Store, tmp_path: Path
) -> None:
    there = FeedsSettings(log=f"kafka://{kafka.servers}/{prefix}")
    with FeedLog(tmp_path / "orders", 2, 1 << 20) as embedded:
        (end, _) = embedded.append({0: [b"{}"]})
    with pytest.raises(ConflictError, match=r'start once with feeds\.log = "embedded" until they are stored'):
        find_log(FEED, ORDERS, tmp_path / "orders", there, store.topics, [0, 0])
    find_log(FEED, ORDERS, tmp_path / "orders", there, store.topics, [end, 0]).open().close()
    with pytest.raises(ConflictError, match=r"is in Kafka: set feeds\.log as it was"):
        find_log(FEED, ORDERS, tmp_path / "orders", FeedsSettings(), store.topics, [end, 0])


def test_a_topic_of_others_is_taken_from_its_beginning_and_left_as_it_is(
    kafka: KafkaServer, prefix: str, store: Store, open_kafka: OpenLog
) -> None:
    theirs = open_kafka()
    theirs.append({0: [b"a", b"b"]})
    feed = Feed("copies", "Orders", "id", 2, topic=theirs.topic)
    log = ForeignLog(kafka.servers, feed, ORDERS, store.topics, [7, 7]).open()
    assert log.ends() == [9, 7]
    theirs.append({1: [b"c"]})
    until(lambda: log.ends() == [9, 8])
    with pytest.raises(ConflictError, match=f"is filled from the topic {theirs.topic} of Kafka: publish there"):
        log.append({0: [b"d"]})
    log.release([9, 8])
    log.remove()
    log.close()
    assert messages(kafka, theirs.topic, 0, 2) == [b"a", b"b"]


def test_a_topic_of_others_that_is_not_there_is_told(
    kafka: KafkaServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.data.feeds.sliced_topic.CALL_SECONDS", 5.0)
    feed = Feed("copies", "Orders", "id", 2, topic="nowhere")
    with pytest.raises(UnavailableError, match=r"topic nowhere: .*Unknown topic"):
        ForeignLog(kafka.servers, feed, ORDERS, store.topics, [0, 0]).open()


def test_a_topic_that_is_not_to_be_seen_or_is_made_anew_while_it_is_read_is_told(
    kafka: KafkaServer, store: Store, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.data.feeds.sliced_topic.CALL_SECONDS", 1.0)
    monkeypatch.setattr("tocsin.data.feeds.topics._COMPARE_SECONDS", 0.0)
    kafka.create_topic(prefix, 2)
    log = ForeignLog(
        kafka.servers, Feed("copies", "Orders", "id", 2, topic=prefix), ORDERS, store.topics, [0, 0]
    ).open()
    assert log.damage() == ""
    admin = AdminClient({"bootstrap.servers": kafka.servers, "log_level": 0})
    admin.delete_topics([prefix])[prefix].result()
    until(lambda: f"feed copies: Kafka at {kafka.servers}, topic {prefix}" in log.damage())
    kafka.create_topic(prefix, 2)
    until(lambda: "was made anew while it was read" in log.damage())
    log.close()


def test_partitions_that_are_added_to_a_topic_of_others_are_told_and_read_from_their_beginning_by_more_slices(
    kafka: KafkaServer, store: Store, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.data.feeds.topics._COMPARE_SECONDS", 0.0)
    kafka.create_topic(prefix, 2)
    feed = Feed("copies", "Orders", "id", 2, topic=prefix)
    log = ForeignLog(kafka.servers, feed, ORDERS, store.topics, [0, 0]).open()
    add_partitions(kafka, prefix, 3)
    produce(kafka, prefix, 0, 5)
    produce(kafka, prefix, 2, 4)
    until(lambda: "has 3 partitions by now, and what is in the last 1 is not read" in log.damage())
    assert "CREATE OR REPLACE FEED … INTO 3 SLICES" in log.damage()
    until(lambda: log.ends() == [5, 0])
    log.close()
    # The next process finds the same, and reads what it can.
    again = ForeignLog(kafka.servers, feed, ORDERS, store.topics, [5, 0]).open()
    assert (again.ends(), "INTO 3 SLICES" in again.damage()) == ([5, 0], True)
    again.close()
    more = msgspec.structs.replace(feed, slices=3)
    grown = ForeignLog(kafka.servers, more, ORDERS, store.topics, [3, 0, 0]).open()
    assert (grown.ends(), grown.bases, grown.damage()) == ([5, 0, 4], [0, 0, 0], "")
    grown.close()
    # Should the slice have been of another log before, its positions go on.
    known = store.topics.find("copies")
    assert known is not None
    store.topics.put("copies", KnownTopic(known.id, known.bases[:2]))
    other = ForeignLog(kafka.servers, more, ORDERS, store.topics, [5, 0, 70]).open()
    assert other.ends() == [5, 0, 74]
    other.close()


def test_a_feed_from_kafka_needs_to_know_where_that_is(store: Store, tmp_path: Path) -> None:
    feed = Feed("copies", "Orders", "id", 2, topic="orders")
    with pytest.raises(SettingsError, match=r"say where that is, feeds\.log = kafka://host:9092"):
        find_log(feed, ORDERS, tmp_path, FeedsSettings(), store.topics, [0, 0])


@pytest.mark.parametrize("url", ["kafka://", "kafka:///prefix", "amqp://here"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="kafka://host:9092"):
        read_address(url)


def test_an_address_has_servers_and_perhaps_a_prefix() -> None:
    assert read_address("kafka://a:1,b:2") == ("a:1,b:2", "tocsin")
    assert read_address("kafka://a:1/city") == ("a:1", "city")
