"""The catalog: feeds that are dropped, created anew or damaged, and what it finds when it is opened."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.data.world import CHANNEL, DATASETS, FEED, World, publish, reports
from tests.waiting import until
from tocsin.data.compiler import compiler
from tocsin.data.compiler.check import Compiled, check
from tocsin.data.compiler.compiler import Compiler
from tocsin.data.feeds.log import FeedLog
from tocsin.data.lake.table import Table
from tocsin.data.pipeline import Pipeline
from tocsin.errors import ConflictError, StatementError, StorageError, UnavailableError
from tocsin.model.messages import Published
from tocsin.schema.definitions import Channel, Dataset

pytestmark = pytest.mark.spark


def log_path(pipeline: Pipeline) -> Path:
    assert isinstance(pipeline.log, FeedLog)
    return pipeline.log.path


def test_records_published_before_spark_is_there_are_stored_once_it_is(world: World) -> None:
    world.apply(DATASETS + FEED)
    assert publish(world, "a", "b") == Published(2)
    assert world.shown("FEEDS")["reports"]["backlog_bytes"] > 0
    world.start()
    until(lambda: world.shown("FEEDS")["reports"]["backlog_bytes"] == 0)
    assert sorted(world.catalog.tables["Reports"].read()["id"].to_pylist()) == ["a", "b"]


def test_a_feed_that_is_dropped_first_stores_all_that_was_accepted_and_takes_no_more(world: World) -> None:
    world.apply(DATASETS + FEED)
    world.start()
    pipeline = world.catalog.pipelines["reports"]
    accepted: list[str] = []
    begun = threading.Event()

    async def publish_until_refused() -> None:
        for number in range(10**6):
            body = json.dumps({"id": f"r{number}", "etype": "fire", "severity": 1}).encode()
            await pipeline.admission.publish(body, "application/json")
            accepted.append(f"r{number}")
            if number == 20:
                begun.set()

    def publisher() -> None:
        with pytest.raises(UnavailableError, match=r"being closed|is closed"):
            asyncio.run(publish_until_refused())

    thread = threading.Thread(target=publisher)
    thread.start()
    assert begun.wait(60)
    assert world.actions("DROP FEED reports") == ["dropped"]
    thread.join(60)
    assert sorted(world.catalog.tables["Reports"].read()["id"].to_pylist()) == sorted(accepted)
    assert not log_path(pipeline).exists()


def test_a_feed_that_cannot_be_drained_is_not_dropped_and_takes_publications_again(world: World) -> None:
    world.apply(DATASETS + FEED)
    publish(world, "a")
    with pytest.raises(StatementError, match=r"feed reports still has .* bytes that its dataset has not"):
        world.apply("DROP FEED reports")
    assert publish(world, "b") == Published(1)
    with pytest.raises(ConflictError):
        world.catalog.pipelines["reports"].drain(0)
    world.start()
    assert world.actions("DROP FEED reports") == ["dropped"]
    assert sorted(world.catalog.tables["Reports"].read()["id"].to_pylist()) == ["a", "b"]


def test_a_feed_created_anew_goes_on_behind_the_old_one_and_forgets_nobodys_ids(world: World) -> None:
    world.apply(DATASETS + FEED)
    world.start()
    publish(world, "a", "b")
    world.apply("DROP FEED reports; CREATE FEED reports INTO Reports INTO 2 SLICES")
    publish(world, "b", "c")
    until(lambda: world.shown("FEEDS")["reports"]["backlog_bytes"] == 0)
    assert sorted(world.catalog.tables["Reports"].read()["id"].to_pylist()) == ["a", "b", "c"]


def test_a_dataset_and_its_feed_created_anew_know_nothing_of_their_former_selves(world: World) -> None:
    world.apply(DATASETS + FEED)
    world.start()
    publish(world, "a", "b")
    pipeline = world.catalog.pipelines["reports"]
    pipeline.log.append({0: [b"does not fit"]})
    until(lambda: world.shown("FEEDS")["reports"]["dead_letters"] == 1)
    world.apply("DROP FEED reports; DROP DATASET Reports;" + DATASETS + FEED)
    assert world.shown("FEEDS")["reports"]["dead_letters"] == 0
    publish(world, "a")
    world.catalog.pipelines["reports"].log.append({0: [b"does not fit"]})
    until(lambda: world.shown("FEEDS")["reports"]["dead_letters"] == 1)
    until(lambda: world.shown("FEEDS")["reports"]["backlog_bytes"] == 0)
    assert world.catalog.tables["Reports"].read()["id"].to_pylist() == ["a"]


def test_damage_stays_a_problem_until_the_quarantined_file_is_moved_away(world: World) -> None:
    world.apply(DATASETS + FEED.replace("4", "1"))
    publish(world, "a")
    publish(world, "b")
    pipeline = world.catalog.pipelines["reports"]
    [segment] = log_path(pipeline).glob("slice-0000/*.log")
    content = bytearray(segment.read_bytes())
    content[-3] ^= 0xFF
    segment.write_bytes(content)
    world.start()
    until(lambda: pipeline.health().backlog_bytes == 0)
    publish(world, "c")
    until(lambda: sorted(world.catalog.tables["Reports"].read()["id"].to_pylist()) == ["a", "c"])
    assert "1 damaged part(s) of its log" in pipeline.health().error
    world.restart()
    assert "1 damaged part(s) of its log" in world.shown("FEEDS")["reports"]["problem"]
    for kept in (log_path(pipeline) / "quarantine").iterdir():
        kept.unlink()
    assert world.shown("FEEDS")["reports"]["problem"] == ""


def test_a_channel_that_spark_no_longer_takes_says_so_and_the_others_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply(DATASETS + CHANNEL + CHANNEL.replace("OfType", "Other"))
    world.attach("Other", {"event": "fire"})
    world.close()
    real = Compiler.compile

    def refusing(self: Compiler, channel: Any) -> Any:
        if channel.name == "OfType":
            raise StatementError("no such function", line=1, column=8)
        return real(self, channel)

    monkeypatch.setattr(Compiler, "compile", refusing)
    world.open()
    world.start()
    shown = world.shown("CHANNELS")["OfType"]
    assert (shown["state"], "line 1, column 8: no such function" in shown["error"]) == ("failing", True)
    world.put("Reports", *reports("fire"))
    world.wait_for("Other", 1)
    monkeypatch.undo()
    assert world.actions(CHANNEL.replace("CREATE", "CREATE OR REPLACE").replace("r.id", "r.*")) == ["replaced"]
    assert world.shown("CHANNELS")["OfType"]["error"] == ""


def test_compiled_channels_are_remembered_and_checked_again_when_that_is_damaged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply(DATASETS + CHANNEL)
    checked: list[str] = []
    real = check

    def watched(spark: SparkSession, channel: Channel, datasets: Mapping[str, Dataset]) -> Compiled:
        checked.append(channel.name)
        return real(spark, channel, datasets)

    monkeypatch.setattr(compiler, "check", watched)
    world.restart()
    assert checked == []
    for file in world.settings.data.directory.glob("compiled/*.json"):
        file.write_bytes(b"")
    world.restart()
    assert checked == ["OfType"]


def test_a_schema_mismatch_is_told_and_lets_go_of_everything(world: World, spark: SparkSession, tmp_path: Path) -> None:
    world.apply(DATASETS + FEED + "CREATE DATASET More (id STRING);")
    world.close()
    directory = world.settings.data.directory
    (directory / "datasets" / "More").rename(tmp_path / "kept")
    Table(directory / "datasets" / "More", pa.schema([("other", pa.int64())]))
    with pytest.raises(StorageError, match=r"does not fit its definition .*id is missing, declared string"):
        world.open()
    world.store.close()
    shutil.rmtree(directory / "datasets" / "More")
    (tmp_path / "kept").rename(directory / "datasets" / "More")
    world.open()
    assert set(world.shown("FEEDS")) == {"reports"}


def test_a_feed_whose_function_is_gone_takes_what_waits_without_it_once_it_is_replaced(
    spark: SparkSession, tmp_path: Path
) -> None:
    module = "tests.data.processing.functions"
    world = World(spark, tmp_path, feeds={"retry_after_seconds": 0.05, "functions": [module]})
    world.apply(DATASETS + FEED.replace(";", f" PROCESSED BY '{module}:nothing';"))
    publish(world, "a", "b")
    world.close()
    later = World(spark, tmp_path).start()
    until(lambda: "are not allowed here" in later.shown("FEEDS")["reports"]["problem"])
    publish(later, "c")
    assert later.actions(FEED.replace("CREATE", "CREATE OR REPLACE")) == ["replaced"]
    publish(later, "d")
    until(lambda: later.shown("FEEDS")["reports"]["backlog_bytes"] == 0)
    assert sorted(later.catalog.tables["Reports"].read()["id"].to_pylist()) == ["a", "b", "c", "d"]
    assert later.shown("FEEDS")["reports"]["problem"] == ""
    later.close()
