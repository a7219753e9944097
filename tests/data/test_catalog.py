"""The catalog after accidents: whatever step a change did not come beyond, it opens again and can be applied again."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.data.waiting import until
from tests.data.world import DATASETS, World, reports
from tocsin.data import catalog as module
from tocsin.data import compiling
from tocsin.data.channels.check import Compiled, check
from tocsin.data.channels.runner import Runner
from tocsin.data.compiling import Compiler
from tocsin.data.lake.table import Table
from tocsin.data.results import Results
from tocsin.data.store.definitions import Definitions
from tocsin.data.subscriptions import Subscriptions
from tocsin.errors import ConflictError, StatementError, StorageError, UnavailableError
from tocsin.model.definitions import Channel, Dataset
from tocsin.model.messages import Published

pytestmark = pytest.mark.spark

FEED = "CREATE FEED reports INTO Reports SLICED BY id INTO 4 SLICES;"
CHANNEL = """CREATE CONTINUOUS CHANNEL OfType(event STRING) AS
SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r);"""

Crash = Callable[[object, str], None]


class Crashed(BaseException):
    """The process dies here."""


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    world = World(spark, tmp_path / "data", feeds={"retry_after_seconds": 0.05})
    yield world
    world.close()


@pytest.fixture
def crash() -> Iterator[Crash]:
    """Lets the next call of a function die before it has done anything."""
    with ExitStack() as stack:

        def crash(owner: object, name: str) -> None:
            patch = stack.enter_context(pytest.MonkeyPatch.context())

            def died(*_: object, **__: object) -> None:
                patch.undo()
                raise Crashed

            patch.setattr(owner, name, died)

        yield crash


def begin_again(world: World) -> None:
    world.close()
    world.open()
    world.start()


STEPS_OF_CREATION: list[tuple[object, str]] = [
    (Results, "skip"),
    (Definitions, "put"),
    (Runner, "add"),
]


@pytest.mark.parametrize(("owner", "name"), STEPS_OF_CREATION, ids=[name for _, name in STEPS_OF_CREATION])
def test_a_crash_while_a_channel_is_created_leaves_it_created_or_not(
    world: World, crash: Crash, owner: object, name: str
) -> None:
    world.start()
    world.apply(DATASETS)
    world.put("Reports", *reports("fire"))
    crash(owner, name)
    with pytest.raises(Crashed):
        world.apply(CHANNEL)
    begin_again(world)
    assert world.actions(CHANNEL) == ["unchanged" if name == "add" else "created"]
    world.attach("OfType", {"event": "fire"})
    world.put("Reports", *reports("fire", first=7))
    assert [row["id"] for _, row in world.wait_for("OfType", 1)] == ["r7"]


def test_a_channel_that_the_store_refused_does_not_exist_and_can_be_created_afterwards(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise StorageError("the disk is full")

    world.start()
    world.apply(DATASETS)
    monkeypatch.setattr(Definitions, "put", refused)
    for statement in (CHANNEL, FEED, "CREATE DATASET Another (id STRING)"):
        with pytest.raises(StorageError, match="the disk is full"):
            world.apply(statement)
    monkeypatch.undo()
    assert (world.shown("CHANNELS"), world.shown("FEEDS")) == ({}, {})
    assert set(world.shown("DATASETS")) == {"Reports", "People"}
    assert world.actions(CHANNEL + FEED) == ["created", "created"]


STEPS_OF_REMOVAL: list[tuple[object, str]] = [
    (Definitions, "remove"),
    (Runner, "remove"),
    (Subscriptions, "drop"),
    (module, "_discard"),
]


@pytest.mark.parametrize(("owner", "name"), STEPS_OF_REMOVAL, ids=[name for _, name in STEPS_OF_REMOVAL])
def test_a_crash_while_a_channel_is_dropped_leaves_it_there_or_not(
    world: World, crash: Crash, owner: object, name: str
) -> None:
    world.start()
    world.apply(DATASETS + CHANNEL)
    world.attach("OfType", {"event": "fire"})
    world.put("Reports", *reports("fire"))
    world.wait_for("OfType", 1)
    crash(owner, name)
    with pytest.raises(Crashed):
        world.apply("DROP CHANNEL OfType")
    begin_again(world)
    there = name == "remove" and owner is Definitions
    assert world.actions("DROP CHANNEL IF EXISTS OfType") == ["dropped" if there else "unchanged"]
    # Created anew, it has none of its former self's subscriptions, results or progress.
    assert world.actions(CHANNEL) == ["created"]
    assert (world.found("OfType"), world.catalog.subscriptions.count("OfType")) == ([], 0)
    world.attach("OfType", {"event": "fire"})
    world.put("Reports", *reports("fire", first=7))
    assert [row["id"] for _, row in world.wait_for("OfType", 1)] == ["r7"]


@pytest.mark.parametrize("name", ["put", "_discard"])
def test_a_crash_while_a_feed_is_replaced_leaves_one_that_works(world: World, crash: Crash, name: str) -> None:
    world.apply(DATASETS + FEED)
    crash(module if name == "_discard" else Definitions, name)
    replacing = FEED.replace("CREATE", "CREATE OR REPLACE").replace("4", "2")
    with pytest.raises(Crashed):
        world.apply(replacing)
    begin_again(world)
    assert world.actions(replacing) == ["replaced"]
    assert publish(world, "a") == Published(1)
    until(lambda: world.catalog.tables["Reports"].read().num_rows == 1)


@pytest.mark.parametrize(("owner", "name"), [(Definitions, "remove"), (shutil, "rmtree")], ids=["remove", "rmtree"])
def test_a_crash_while_a_dataset_is_dropped_leaves_an_empty_one_or_none(
    world: World, crash: Crash, owner: object, name: str
) -> None:
    world.apply(DATASETS)
    world.put("Reports", *reports("fire"))
    crash(owner, name)
    with pytest.raises(Crashed):
        world.apply("DROP DATASET Reports")
    begin_again(world)
    world.apply("DROP DATASET IF EXISTS Reports; " + DATASETS)
    assert world.catalog.tables["Reports"].read().num_rows == 0


def test_a_dataset_that_the_store_does_not_let_go_of_keeps_its_records(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise StorageError("the disk is full")

    world.apply(DATASETS)
    world.put("Reports", *reports("fire"))
    monkeypatch.setattr(Definitions, "remove", refused)
    with pytest.raises(StorageError, match="the disk is full"):
        world.apply("DROP DATASET Reports")
    world.close()
    world.open()
    assert world.catalog.tables["Reports"].read()["id"].to_pylist() == ["r0"]


def publish(world: World, *names: str) -> Published:
    body = json.dumps([{"id": name, "etype": "fire", "severity": 1} for name in names]).encode()
    return asyncio.run(world.catalog.pipelines["reports"].admission.publish(body, "application/json"))


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
    assert not pipeline.log.path.exists()


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
    [segment] = pipeline.log.path.glob("slice-0000/*.log")
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
    for kept in (pipeline.log.path / "quarantine").iterdir():
        kept.unlink()
    assert world.shown("FEEDS")["reports"]["problem"] == ""


def test_a_channel_that_spark_no_longer_takes_says_so_and_the_others_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply(DATASETS + CHANNEL + CHANNEL.replace("OfType", "Other"))
    world.attach("Other", {"event": "fire"})
    world.close()
    real = Compiler.compiled

    def refusing(self: Compiler, spark: SparkSession, channel: Any) -> Any:
        if channel.name == "OfType":
            raise StatementError("no such function", line=1, column=8)
        return real(self, spark, channel)

    monkeypatch.setattr(Compiler, "compiled", refusing)
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

    monkeypatch.setattr(compiling, "check", watched)
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
