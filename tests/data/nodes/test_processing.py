"""A node's processing on real Spark: slices of an embedded log and of one in Kafka, written here or by executors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.data.nodes.sharing import KEYED, UNKEYED, Sharing, dataset_of, on_spark
from tests.kafka import KafkaServer
from tocsin.data.feeds.kafka import KafkaLog
from tocsin.data.lake.folder import Folder
from tocsin.data.nodes import files
from tocsin.data.nodes.files import FileKind
from tocsin.data.nodes.processing import SliceProcessing
from tocsin.data.nodes.sharing import require_shareable
from tocsin.data.store import Store
from tocsin.errors import InvalidError, UnavailableError
from tocsin.schema.definitions import Feed

pytestmark = pytest.mark.spark


class KafkaSharing(Sharing):
    """The same with its log in Kafka, whose positions go on after those of a log before."""

    def __init__(self, kafka: KafkaServer, store: Store, directory: Path, **options: Any) -> None:
        super().__init__(directory, **options)
        self.log.close()
        self.table.mark({f"slice-{index}": 1000 * index for index in range(self.feed.slices)})
        self.log = KafkaLog(kafka.servers, kafka.prefix(), self.feed, store.topics, self.store.markers()).open()
        self.open()


Make = Callable[..., Sharing]


@pytest.fixture(params=["embedded", "kafka"])
def make(request: pytest.FixtureRequest, tmp_path: Path, lake: Folder) -> Iterator[Make]:
    """Makes a shared feed, with its log and its lake here or there."""
    with ExitStack() as stack:

        def in_kafka(**options: Any) -> Sharing:
            server, store = request.getfixturevalue("kafka"), stack.enter_context(Store(tmp_path))
            return KafkaSharing(server, store, tmp_path, lake=lake, **options)

        def make(**options: Any) -> Sharing:
            made = Sharing(tmp_path, lake=lake, **options) if request.param == "embedded" else in_kafka(**options)
            stack.callback(made.log.close)
            return made

        yield make


@pytest.fixture(params=["here", "executors"])
def node(request: pytest.FixtureRequest, spark: SparkSession) -> Callable[..., SliceProcessing]:
    """Makes nodes, whose ways to write must not differ in anything that can be seen."""
    return lambda sharing, name="a": on_spark(spark, sharing, name, request.param == "executors")


Node = Callable[..., SliceProcessing]


def test_what_is_published_is_read_checked_and_written_and_counts_when_it_is_committed(make: Make, node: Node) -> None:
    sharing = make()
    sharing.publish(*({"id": f"r{n}", "value": n} for n in range(30)))
    sharing.publish_lines(("r5", b'{"id": "odd", "value": "none"}'), ("r6", b"no json"))
    starts, ends = sharing.starts(), sharing.log.ends()
    batch = node(sharing).process(starts)
    assert [(part.begin, part.end) for part in batch.parts] == [(starts[i], end) for i, end in enumerate(ends)]
    assert sum(part.records for part in batch.parts) == 32
    assert sharing.rows() == {}
    sharing.commit(batch)
    assert sharing.rows() == {f"r{n}": n for n in range(30)}
    letters = sharing.letters.read(columns=["line", "reason"]).to_pylist()
    assert {letter["line"] for letter in letters} == {'{"id": "odd", "value": "none"}', "no json"}
    assert {letter["reason"] for letter in letters} == {"does not fit the columns of Reports"}
    assert sharing.store.markers() == ends
    assert node(sharing, "b").process(sharing.starts()).parts == ()


def test_a_record_that_is_sent_twice_is_stored_once(make: Make, node: Node) -> None:
    sharing = make()
    one, other = node(sharing, "a"), node(sharing, "b")
    record = {"id": "again", "value": 1}
    index = sharing.slice_of("again")
    # In one batch,
    sharing.publish(record, {"id": "again", "value": 2})
    first = one.process(sharing.starts())
    # in two that wait to be committed,
    sharing.publish({"id": "again", "value": 3}, {"id": "new", "value": 3})
    second = one.process({**sharing.starts(), **{part.slice: part.end for part in first.parts}})
    sharing.commit(first, second)
    # after the slice has moved to another node,
    one.forget([index])
    other.prepare([index])
    sharing.publish({"id": "again", "value": 4})
    third = other.process(sharing.starts(index))
    assert [(part.records, list(third.files)) for part in third.parts] == [(1, [])]
    sharing.commit(third)
    # and after it is back.
    one.prepare([index])
    sharing.publish({"id": "again", "value": 5}, {"id": "newer", "value": 5})
    sharing.commit(one.process(sharing.starts()))
    assert sharing.rows() == {"again": 1, "new": 3, "newer": 5}


def test_what_was_refused_is_not_taken_for_seen(make: Make, node: Node) -> None:
    sharing = make()
    sharing.publish({"id": "a", "value": 1}, {"id": "b", "value": 2})
    processing = node(sharing)
    refused = processing.process(sharing.starts())
    again = processing.process(sharing.starts())
    assert [part.end for part in again.parts] == [part.end for part in refused.parts]
    sharing.commit(again)
    assert sharing.rows() == {"a": 1, "b": 2}
    sharing.publish({"id": "a", "value": 3})
    assert not processing.process(sharing.starts()).files


def test_a_batch_has_a_fair_share_of_each_slice(make: Make, node: Node) -> None:
    sharing = make(max_batch_bytes=1500)
    for turn in range(6):
        sharing.publish(*({"id": f"{turn}-{n}", "value": n} for n in range(10)))
    processing = node(sharing)
    assert set(processing.backlog(sharing.starts())) == set(range(4))
    assert all(processing.backlog(sharing.starts()).values())
    batches = 0
    while (batch := processing.process(sharing.starts())).parts:
        batches += 1
        sharing.commit(batch)
    assert batches > 1
    assert len(sharing.rows()) == 60
    assert set(processing.backlog(sharing.starts()).values()) == {0}


def test_a_node_waits_until_it_sees_what_its_start_rests_on(make: Make, node: Node) -> None:
    sharing = make()
    sharing.publish({"id": "a", "value": 1})
    index = sharing.slice_of("a")
    first = node(sharing, "a").process(sharing.starts(index))
    sharing.publish({"id": "a", "value": 2})
    taker, start = node(sharing, "b"), {index: first.parts[0].end}
    with pytest.raises(
        UnavailableError, match=f"slice {index} is to be read from position {start[index]}, and is known"
    ):
        taker.process(start)
    sharing.commit(first)
    assert not taker.process(start).files


def test_spark_has_done_all_of_it_once_when_a_node_is_prepared(make: Make, node: Node, spark: SparkSession) -> None:
    def count_jobs(slices: list[int]) -> int:
        group = str(uuid4())
        spark.sparkContext.setJobGroup(group, "a node is prepared")
        processing.prepare(slices)
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    sharing = make()
    sharing.publish({"id": "a", "value": 1})
    before = all_files(sharing)
    processing = node(sharing)
    assert count_jobs([]) > 0
    assert count_jobs([0]) == 0
    # Nothing is left of it, and nothing was processed.
    assert all_files(sharing) == before
    sharing.commit(processing.process(sharing.starts()))
    assert sharing.rows() == {"a": 1}
    assert sharing.letters.read(columns=["line"]).num_rows == 0


def all_files(sharing: Sharing) -> set[str]:
    return {name for folder in (sharing.table.folder, sharing.letters.folder) for name in folder.files()}


def test_files_are_where_they_should_be_and_bear_no_version(make: Make, node: Node) -> None:
    sharing = make(statement=UNKEYED)
    sharing.publish({"id": "a", "value": 1}, {"id": "a", "value": 1})
    processing = node(sharing)
    batch = processing.process(sharing.starts())
    [file] = map(files.decode, batch.files)
    folder, _, name = file.path.rpartition("/")
    content = sharing.table.folder.read(name)
    assert (file.kind, folder, file.rows, file.size) == (FileKind.RECORDS, "datasets/Reports", 2, len(content))
    assert pq.read_schema(pa.BufferReader(content)).names == ["id", "value"]
    processing.discard(batch.files)
    assert sharing.table.folder.find(name) is None


def test_what_cannot_be_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    sharing = Sharing(tmp_path)
    processing = on_spark(spark, sharing)
    with pytest.raises(UnavailableError, match="has 4 slices, and no slice 4"):
        processing.prepare([4])
    sharing.log.close()
    (tmp_path / "feeds" / "reports" / "ends").unlink()
    with pytest.raises(UnavailableError, match="does not say how far it may be read"):
        processing.process({0: 0})


@pytest.mark.parametrize(
    ("feed", "statement", "reason"),
    [
        (Feed("reports", "Reports", "id", 4), KEYED, "Reports is keyed, and nodes share the slices of append datasets"),
        (Feed("reports", "Reports", "value", 4), None, "slice by id instead of value"),
        (Feed("reports", "Reports", "id", 4, topic="t"), None, "whoever fills the topic t chooses the partition"),
    ],
)
def test_feeds_that_cannot_be_shared_are_refused(feed: Feed, statement: str | None, reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        require_shareable(feed, dataset_of(statement or UNKEYED + " PRIMARY KEY id"))


def test_a_feed_that_others_fill_can_be_shared_where_nothing_is_seen_again(
    kafka: KafkaServer, spark: SparkSession, tmp_path: Path
) -> None:
    from confluent_kafka import Producer

    from tocsin.data.feeds.kafka import ForeignLog

    sharing = Sharing(tmp_path, UNKEYED, slices=2)
    sharing.log.close()
    sharing.feed = Feed("reports", "Reports", "id", 2, topic=kafka.prefix())
    kafka.create_topic(sharing.feed.topic, 2)
    producer = Producer({"bootstrap.servers": kafka.servers, "log_level": 0})
    for value in ({"id": "a", "value": 1}, [{"id": "b", "value": 2}, {"id": "c"}], {"value": "bad"}):
        producer.produce(sharing.feed.topic, json.dumps(value), partition=1)
    producer.flush(60)
    with Store(tmp_path) as store:
        sharing.log = ForeignLog(kafka.servers, sharing.feed, sharing.dataset, store.topics, [0, 0]).open()
        sharing.open()
        sharing.commit(on_spark(spark, sharing).process(sharing.starts()))
        sharing.log.close()
    assert sharing.rows() == {"a": 1, "b": 2, "c": None}
    assert sharing.letters.read(columns=["slice", "position"]).to_pylist() == [{"slice": 1, "position": 3}]
