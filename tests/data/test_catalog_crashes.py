"""The catalog after accidents: whatever step a change did not come beyond, it opens again and can be applied again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.data.world import CHANNEL, DATASETS, FEED, World, publish, reports
from tests.waiting import until
from tocsin.data import live_channels, live_feeds, removal
from tocsin.data.channels.runner import Runner
from tocsin.data.results import ChannelResults
from tocsin.data.store.definitions import Definitions
from tocsin.data.subscriptions import SubscriptionRegistry
from tocsin.errors import StorageError
from tocsin.model.messages import Published

pytestmark = pytest.mark.spark

Crash = Callable[[object, str], None]


class Crashed(BaseException):
    """The process dies here."""


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
    (ChannelResults, "skip"),
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
    (SubscriptionRegistry, "drop"),
    (live_channels, "discard"),
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
    assert (world.found("OfType"), world.catalog.live.subscriptions.count("OfType")) == ([], 0)
    world.attach("OfType", {"event": "fire"})
    world.put("Reports", *reports("fire", first=7))
    assert [row["id"] for _, row in world.wait_for("OfType", 1)] == ["r7"]


@pytest.mark.parametrize("name", ["put", "set_aside"])
def test_a_crash_while_a_feed_is_replaced_leaves_one_that_works(world: World, crash: Crash, name: str) -> None:
    world.apply(DATASETS + FEED)
    crash(live_feeds if name == "set_aside" else Definitions, name)
    replacing = FEED.replace("CREATE", "CREATE OR REPLACE").replace("4", "2")
    with pytest.raises(Crashed):
        world.apply(replacing)
    begin_again(world)
    assert world.actions(replacing) == ["replaced"]
    assert publish(world, "a") == Published(1)
    until(lambda: world.catalog.tables["Reports"].read().num_rows == 1)


@pytest.mark.parametrize("name", ["remove", "finish"])
def test_a_crash_while_a_dataset_is_dropped_leaves_it_with_all_its_records_or_not_at_all(
    world: World, crash: Crash, name: str
) -> None:
    world.apply(DATASETS)
    world.put("Reports", *reports("fire"))
    crash(Definitions if name == "remove" else removal, name)
    with pytest.raises(Crashed):
        world.apply("DROP DATASET Reports")
    begin_again(world)
    there = name == "remove"
    assert ("Reports" in world.catalog.tables) is there
    if there:
        assert world.catalog.tables["Reports"].read()["id"].to_pylist() == ["r0"]
    world.apply("DROP DATASET IF EXISTS Reports; " + DATASETS)
    assert world.catalog.tables["Reports"].read().num_rows == 0
    assert list((world.settings.data.directory / "datasets").glob(".removed-*")) == []


@pytest.mark.parametrize("name", ["put", "finish"])
def test_a_crash_while_a_dataset_is_replaced_by_one_with_other_columns_leaves_one_of_them(
    world: World, crash: Crash, name: str
) -> None:
    world.apply(DATASETS)
    crash(Definitions if name == "put" else removal, name)
    with pytest.raises(Crashed):
        world.apply("CREATE OR REPLACE DATASET Reports (id STRING, place STRING) PRIMARY KEY id")
    begin_again(world)
    done = world.actions("CREATE OR REPLACE DATASET Reports (id STRING, place STRING) PRIMARY KEY id")
    assert done == ["replaced" if name == "put" else "unchanged"]
    world.put("Reports", {"id": "r1", "place": "here"})


@pytest.mark.parametrize("name", ["set_aside", "remove", "finish"])
def test_a_crash_while_a_feed_is_dropped_leaves_one_that_works_or_none(world: World, crash: Crash, name: str) -> None:
    world.start()
    world.apply(DATASETS + FEED)
    publish(world, "a")
    crash({"set_aside": live_feeds, "remove": Definitions, "finish": removal}[name], name)
    with pytest.raises(Crashed):
        world.apply("DROP FEED reports")
    begin_again(world)
    assert ("reports" in world.catalog.pipelines) is (name != "finish")
    world.apply("DROP FEED IF EXISTS reports; " + FEED)
    publish(world, "b")
    until(lambda: sorted(world.catalog.tables["Reports"].read()["id"].to_pylist()) == ["a", "b"])


REPLACING = FEED.replace("CREATE", "CREATE OR REPLACE").replace("4", "2")


@pytest.mark.parametrize(
    ("statement", "name"),
    [("DROP FEED reports", "rename"), ("DROP FEED reports", "remove"), (REPLACING, "rename"), (REPLACING, "put")],
)
def test_a_feed_whose_removal_fails_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, statement: str, name: str
) -> None:
    def refused(*_: object) -> None:
        raise OSError(13, "Permission denied") if name == "rename" else StorageError("the disk is full")

    world.start()
    world.apply(DATASETS + FEED)
    publish(world, "a")
    monkeypatch.setattr(Path if name == "rename" else Definitions, name, refused)
    with pytest.raises(StorageError, match="cannot be removed" if name == "rename" else "the disk is full"):
        world.apply(statement)
    monkeypatch.undo()
    publish(world, "b")
    until(lambda: sorted(world.catalog.tables["Reports"].read()["id"].to_pylist()) == ["a", "b"])
    assert world.actions("DROP FEED reports") == ["dropped"]


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


def test_a_channel_that_has_seen_more_than_there_is_sees_what_comes_again(world: World) -> None:
    world.start()
    world.apply(DATASETS + CHANNEL)
    world.attach("OfType", {"event": "fire"})
    world.put("Reports", *reports("fire"))
    world.put("Reports", *reports("fire", first=7))
    world.wait_for("OfType", 2)
    world.idle()
    told = world.catalog.live["OfType"].results.execution
    last = max((world.settings.data.directory / "datasets" / "Reports" / "_delta_log").glob("*.json"))
    last.write_bytes(b"")
    begin_again(world)
    results = world.catalog.live["OfType"].results
    assert results.seen_version("Reports") == world.catalog.tables["Reports"].version == 1
    assert results.execution > told
    assert "Reports could not be read" in world.catalog.tables["Reports"].damage
    world.put("Reports", *reports("fire", first=7))
    assert [row["id"] for _, row in world.wait_for("OfType", 3)] == ["r0", "r7", "r7"]
