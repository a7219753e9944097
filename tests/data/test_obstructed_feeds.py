"""A feed whose log in Kafka cannot be opened is one feed's trouble: all others start, and it goes on by itself."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import SparkSession

from tests.data.world import World
from tests.kafka import KafkaServer
from tests.waiting import until
from tocsin.data.feeds.obstructed import ObstructedLog
from tocsin.errors import ConflictError, StatementError, TocsinError, UnavailableError

DATASETS = "CREATE DATASET Notes (id STRING); CREATE DATASET Copies (id STRING);"
FEEDS = "CREATE FEED notes INTO Notes SLICED BY id INTO 2 SLICES;"


class Others:
    """Who have a topic of their own."""

    def __init__(self, kafka: KafkaServer) -> None:
        self.kafka, self.topic = kafka, kafka.prefix()
        self._about: dict[str, str | int | float | bool] = {"bootstrap.servers": kafka.servers, "log_level": 0}
        self._admin = AdminClient(self._about)
        kafka.create_topic(self.topic, 2)

    def feed(self, slices: int = 2, replacing: bool = False) -> str:
        """The statement by which their topic is read."""
        verb = "CREATE OR REPLACE" if replacing else "CREATE"
        return f"{verb} FEED copies INTO Copies SLICED BY id INTO {slices} SLICES FROM KAFKA '{self.topic}';"

    def produce(self, partition: int, *names: str) -> None:
        producer = Producer(self._about)
        for name in names:
            producer.produce(self.topic, json.dumps({"id": name}).encode(), partition=partition)
        assert producer.flush(60) == 0

    def add_partitions(self, count: int) -> None:
        """So that there are so many."""
        self._admin.create_partitions([NewPartitions(self.topic, count)])[self.topic].result()

    def delete(self) -> None:
        self._admin.delete_topics([self.topic])[self.topic].result()
        until(lambda: self.topic not in self._admin.list_topics().topics)


@pytest.fixture
def others(kafka: KafkaServer) -> Others:
    return Others(kafka)


@pytest.fixture
def start(kafka: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """Starts a data cluster on the same directory, without Spark unless there is one."""
    monkeypatch.setattr("tocsin.data.feeds.sliced_topic.CALL_SECONDS", 2.0)
    monkeypatch.setattr("tocsin.data.feeds.topics._COMPARE_SECONDS", 0.0)
    monkeypatch.setattr("tocsin.data.feeds.obstructed._FIRST_PAUSE", 0.1)
    monkeypatch.setattr("tocsin.data.feeds.obstructed._LONGEST_PAUSE", 0.2)
    log = f"kafka://{kafka.servers}/{kafka.prefix()}"
    with ExitStack() as stack:

        def made(spark: SparkSession | None = None) -> World:
            feeds = {"log": log, "slices": 4, "retry_after_seconds": 0.05}
            world = World(cast(Any, spark), tmp_path / "data", feeds=feeds)
            stack.callback(world.close)
            return world

        yield made


def publish(world: World, feed: str, name: str) -> int:
    body = json.dumps({"id": name}).encode()
    return asyncio.run(world.catalog.pipelines[feed].admission.publish(body, "application/json")).accepted


def problem(world: World, feed: str) -> str:
    return world.catalog.pipelines[feed].health().error


def ids(world: World, dataset: str) -> list[str]:
    return sorted(world.catalog.tables[dataset].read(columns=["id"]).column(0).to_pylist())


def refused(work: Callable[[], object]) -> TocsinError:
    with pytest.raises(TocsinError) as caught:
        work()
    return caught.value


def test_a_topic_that_is_gone_keeps_its_own_feed_only_which_can_be_dropped(
    others: Others, start: Callable[..., World]
) -> None:
    world = start()
    world.apply(DATASETS + FEEDS + others.feed())
    world.close()
    others.delete()
    world = start()
    assert publish(world, "notes", "a") == 1
    assert problem(world, "notes") == ""
    told = problem(world, "copies")
    assert told.startswith("feed copies: its log cannot be opened (Kafka at ")
    assert f"topic {others.topic}" in told
    assert told.endswith("it is tried again by itself")
    assert world.shown("FEEDS")["copies"]["problem"] == told
    assert told in world.catalog.pipelines["copies"].slices().reason
    with pytest.raises(ConflictError, match=f"is filled from the topic {others.topic}: publish there"):
        publish(world, "copies", "b")
    assert world.actions("DROP FEED copies") == ["dropped"]
    assert set(world.catalog.pipelines) == {"notes"}


def test_a_feed_that_others_fill_is_dropped_without_waiting_for_what_they_have_in_their_topic(
    others: Others, start: Callable[..., World]
) -> None:
    world = start()
    world.apply(DATASETS + others.feed())
    others.produce(0, "a")
    until(lambda: world.catalog.pipelines["copies"].backlog > 0)
    assert world.actions("DROP FEED copies") == ["dropped"]


def test_it_goes_on_by_itself_when_the_topic_is_there_again(
    others: Others, start: Callable[..., World], spark: SparkSession
) -> None:
    world = start()
    world.apply(DATASETS + others.feed())
    world.close()
    others.delete()
    world = start(spark).start()
    assert "cannot be opened" in problem(world, "copies")
    others.kafka.create_topic(others.topic, 2)
    others.produce(1, "a", "b")
    until(lambda: ids(world, "Copies") == ["a", "b"])
    # That is another topic than before, which is told.
    assert "was made anew" in problem(world, "copies")


def test_while_kafka_is_away_a_data_cluster_starts_and_nothing_is_lost(
    kafka: KafkaServer, start: Callable[..., World], spark: SparkSession
) -> None:
    world = start()
    world.apply(DATASETS + FEEDS)
    assert publish(world, "notes", "before") == 1
    world.close()
    kafka.stop(signal.SIGKILL)
    try:
        world = start(spark).start()
        assert "cannot be opened" in problem(world, "notes")
        error = refused(lambda: publish(world, "notes", "meanwhile"))
        assert (error.status, "the log of feed notes cannot be opened: Kafka at" in str(error)) == (503, True)
        for statement in ("DROP FEED notes", FEEDS.replace("CREATE", "CREATE OR REPLACE").replace("id", "")):
            with pytest.raises(TocsinError):
                world.apply(statement)
        assert isinstance(world.catalog.pipelines["notes"].log, ObstructedLog)
    finally:
        kafka.start()
    until(lambda: problem(world, "notes") == "")
    assert publish(world, "notes", "after") == 1
    until(lambda: ids(world, "Notes") == ["after", "before"])


def test_one_that_ends_while_kafka_is_away_leaves_nothing_behind(
    kafka: KafkaServer, start: Callable[..., World]
) -> None:
    world = start()
    world.apply(DATASETS + FEEDS)
    world.close()
    kafka.stop(signal.SIGKILL)
    try:
        world = start()
        pipeline = world.catalog.pipelines["notes"]
        world.close()
    finally:
        kafka.start()
    assert pipeline._opening is not None
    assert pipeline._opening._stopping.is_set()
    assert isinstance(pipeline.log, ObstructedLog)


def test_added_partitions_are_told_and_read_once_the_feed_has_more_slices_and_nothing_is_read_twice(
    others: Others, start: Callable[..., World], spark: SparkSession
) -> None:
    world = start(spark).start()
    others.produce(0, "a", "b")
    world.apply(DATASETS + others.feed())
    until(lambda: ids(world, "Copies") == ["a", "b"])
    others.add_partitions(3)
    others.produce(2, "c")
    until(lambda: "INTO 3 SLICES" in problem(world, "copies"))
    world.close()
    # The next start is as good as any.
    world = start(spark).start()
    assert "INTO 3 SLICES" in problem(world, "copies")
    others.produce(1, "d")
    until(lambda: ids(world, "Copies") == ["a", "b", "d"])
    assert world.actions(others.feed(3)) == ["changed"]
    assert world.actions(others.feed(3, replacing=True)) == ["replaced"]
    until(lambda: ids(world, "Copies") == ["a", "b", "c", "d"])
    assert problem(world, "copies") == ""
    world.close()
    world = start(spark).start()
    others.produce(2, "e")
    until(lambda: ids(world, "Copies") == ["a", "b", "c", "d", "e"])


def test_a_feed_has_a_slice_for_each_partition(others: Others, start: Callable[..., World]) -> None:
    world = start()
    world.apply(DATASETS)
    with pytest.raises(StatementError, match="has 2 partitions, and feed copies has 3 slices: say INTO 2 SLICES"):
        world.apply(others.feed(3))
    assert world.catalog.feeds == {}
    world.apply(others.feed(2))
    for slices in (1, 3):
        with pytest.raises(StatementError, match="say INTO 2 SLICES"):
            world.apply(others.feed(slices, replacing=True))
    assert world.catalog.feeds["copies"].slices == 2
    assert problem(world, "copies") == ""
    others.delete()
    with pytest.raises(UnavailableError, match="topic"):
        world.apply(others.feed(3, replacing=True))
    assert world.catalog.feeds["copies"].slices == 2
