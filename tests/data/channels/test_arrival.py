"""Channels matched with records on their way into their dataset find the same as when these are stored, and once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.data.world import DATASETS, World, reports
from tests.examples import examples
from tests.waiting import until
from tocsin.data.channels.arrival import Arrival, OvertakenError

pytestmark = pytest.mark.spark

OF_TYPE = """
CREATE CONTINUOUS CHANNEL OfType(event STRING) AS SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r);
"""
LIKED = """
CREATE CONTINUOUS CHANNEL Liked(who STRING, least INT) AS
SELECT r.id, r.severity * 2 AS twice FROM Reports r LEFT JOIN People p ON p.likes = r.etype AND p.name = who
WHERE is_new(r) AND r.severity >= least AND (p.name IS NOT NULL OR r.etype = 'alarm');
"""
COUNTED = """
CREATE CONTINUOUS CHANNEL Counted(event STRING) AS
SELECT count(*) AS many FROM Reports r WHERE r.etype = event AND is_new(r) HAVING count(*) > 0;
"""
SHARES = """
CREATE CONTINUOUS CHANNEL Shares(whole INT) AS
SELECT r.id, whole DIV r.severity AS share FROM Reports r WHERE is_new(r);
"""
EVERY = """
CREATE REPETITIVE CHANNEL Every(event STRING) PERIOD 1 HOUR AS
SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r);
"""
KINDS = ("fire", "flood", "alarm")


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    world = World(spark, tmp_path / "data").start()
    world.apply(DATASETS + OF_TYPE)
    yield world
    world.close()


def ids(found: list[tuple[int, Any]]) -> list[str]:
    return [row["id"] for _, row in found]


def is_settled(world: World, channel: str) -> bool:
    """Whether a channel has seen everything and does nothing."""
    seen = world.catalog.live[channel].results.seen_version("Reports") == world.catalog.tables["Reports"].version
    return seen and world.catalog.live.status(channel).state == "waiting"


def settle(world: World) -> None:
    """Waits until all channels have seen everything."""
    until(lambda: all(is_settled(world, name) for name in world.catalog.channels))


def running(world: World) -> None:
    """Waits until the channel OfType runs."""
    until(lambda: world.catalog.live.status("OfType").state == "running")


def test_an_arrival_is_waited_for_and_one_that_is_not_stored_does_not_count() -> None:
    stored, lost = (Arrival("Reports", 1, pa.table({"id": ["a"]})) for _ in range(2))
    waiting = threading.Thread(target=stored.wait)
    waiting.start()
    stored.end(stored=True)
    waiting.join(30)
    assert not waiting.is_alive()
    lost.end(stored=False)
    with pytest.raises(OvertakenError, match="version 1 of Reports"):
        lost.wait()


def test_a_match_is_found_on_arrival_and_told_only_when_its_record_is_stored(world: World) -> None:
    [fire] = world.attach("OfType", {"event": "fire"})
    world.idle()
    results = world.catalog.live["OfType"].results
    before = results.execution

    def meanwhile() -> None:
        running(world)
        assert (world.found("OfType"), results.execution, world.executions) == ([], before, [])

    world.arrive("Reports", *reports("fire", "storm"), meanwhile=meanwhile)
    assert world.wait_for("OfType", 1) == [(fire, {"id": "r0"})]
    until(lambda: is_settled(world, "OfType"))
    [execution] = world.executions
    assert (execution.on_arrival, execution.number, execution.bes.tolist()) == (True, before + 1, [fire])
    assert results.seen_version("Reports") == world.catalog.tables["Reports"].version


def test_records_that_the_disk_refuses_are_told_to_nobody_until_they_are_stored(world: World) -> None:
    world.attach("OfType", {"event": "fire"})
    world.idle()

    def refuse() -> None:
        running(world)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        world.arrive("Reports", *reports("fire"), meanwhile=refuse)
    world.idle()
    assert (world.found("OfType"), world.executions) == ([], [])
    world.arrive("Reports", *reports("fire"))
    assert ids(world.wait_for("OfType", 1)) == ["r0"]
    until(lambda: is_settled(world, "OfType"))
    assert ids(world.found("OfType")) == ["r0"]


def test_who_subscribes_before_the_records_are_stored_gets_them_and_everybody_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    [fire] = world.attach("OfType", {"event": "fire"})
    world.idle()
    more: list[int] = []
    matched = threading.Event()
    wait = Arrival.wait

    def wait_and_tell(self: Arrival) -> None:
        matched.set()
        wait(self)

    def subscribe() -> None:
        # Before that, the execution on arrival could still be one for both.
        assert matched.wait(60)
        more.extend(world.attach("OfType", {"event": "flood"}))

    monkeypatch.setattr(Arrival, "wait", wait_and_tell)
    world.arrive("Reports", *reports("fire", "flood"), meanwhile=subscribe)
    assert world.wait_for("OfType", 2) == [(fire, {"id": "r0"}), (more[0], {"id": "r1"})]
    until(lambda: is_settled(world, "OfType"))
    assert len(world.found("OfType")) == 2
    assert [execution.on_arrival for execution in world.executions] == [False]


def test_a_process_that_dies_between_the_two_commits_finds_the_same_after_its_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.attach("OfType", {"event": "fire"})
    world.idle()
    stored, ended = threading.Event(), threading.Event()

    def never(self: Arrival) -> None:
        stored.set()
        assert ended.wait(60)
        raise OvertakenError("the process has ended")

    monkeypatch.setattr(Arrival, "wait", never)
    world.arrive("Reports", *reports("fire", "fire"), meanwhile=lambda: running(world))
    assert stored.wait(60)
    closing = threading.Thread(target=world.close)
    closing.start()
    until(lambda: world.catalog.runner._pool.stopping)
    ended.set()
    closing.join(60)
    assert not closing.is_alive()
    monkeypatch.undo()
    world.open()
    assert (world.found("OfType"), world.catalog.tables["Reports"].version) == ([], 1)
    world.start()
    assert ids(world.wait_for("OfType", 2)) == ["r0", "r1"]
    until(lambda: is_settled(world, "OfType"))
    assert ids(world.found("OfType")) == ["r0", "r1"]


def test_a_channel_that_is_behind_goes_on_from_what_it_has_seen(world: World) -> None:
    world.attach("OfType", {"event": "fire"})
    world.idle()
    with world.catalog.runner.held("OfType"):
        world.arrive("Reports", *reports("fire"))
        world.arrive("Reports", *reports("fire", first=1))
    assert ids(world.wait_for("OfType", 2)) == ["r0", "r1"]
    until(lambda: is_settled(world, "OfType"))
    world.arrive("Reports", *reports("fire", first=2))
    assert ids(world.wait_for("OfType", 3)) == ["r0", "r1", "r2"]


def test_a_channel_that_fails_on_what_arrives_fails_as_it_would_later_and_the_others_are_served(world: World) -> None:
    world.apply(SHARES)
    world.attach("OfType", {"event": "fire"})
    [be] = world.attach("Shares", {"whole": 12})
    world.idle()
    world.arrive("Reports", *reports("fire", "fire", "fire"), meanwhile=lambda: running(world))
    assert ids(world.wait_for("OfType", 3)) == ["r0", "r1", "r2"]
    # The record of severity 0 cannot be divided by; the ordinary executions find that out.
    assert world.wait_for("Shares", 2) == [(be, {"id": "r1", "share": 12}), (be, {"id": "r2", "share": 6})]
    until(lambda: is_settled(world, "Shares"))
    assert world.shown("CHANNELS")["Shares"]["dead_letters"] == 1
    assert [e.on_arrival for e in world.executions if e.channel == "Shares"] == [False]
    assert world.catalog.live["OfType"].results.execution == 1


def test_more_than_is_to_be_matched_on_arrival_waits_until_it_is_stored(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark, tmp_path / "data", channels={"arriving_bytes": 1}).start()
    try:
        world.apply(DATASETS + OF_TYPE)
        world.attach("OfType", {"event": "fire"})
        world.idle()
        world.arrive("Reports", *reports("fire"))
        assert ids(world.wait_for("OfType", 1)) == ["r0"]
        assert [execution.on_arrival for execution in world.executions] == [False]
    finally:
        world.close()


def test_it_is_shown_when_a_channel_is_matched(world: World) -> None:
    world.apply(COUNTED + EVERY)
    assert {name: row["matched"] for name, row in world.shown("CHANNELS").items()} == {
        "OfType": "on arrival",
        "Counted": "when stored",
        "Every": "periodically",
    }


BATCHES = st.lists(
    st.tuples(st.booleans(), st.lists(st.tuples(st.sampled_from((*KINDS, None)), st.integers(0, 3)), max_size=4)),
    min_size=1,
    max_size=4,
)


@pytest.fixture
def pair(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[World, World]]:
    """Two of the same, one of which matches nothing on arrival."""
    settings_of: dict[str, dict[str, Any]] = {"new": {}, "old": {"arriving_bytes": 0}}
    worlds = [World(spark, tmp_path / name, channels=channels) for name, channels in settings_of.items()]
    for world in worlds:
        world.start().apply(DATASETS + OF_TYPE + LIKED + COUNTED)
        world.put("People", *({"name": f"p{n}", "likes": kind} for n, kind in enumerate(KINDS)))
        world.attach("OfType", *({"event": kind} for kind in KINDS))
        world.attach("Liked", *({"who": f"p{n}", "least": least} for n in range(3) for least in (0, 2)))
        world.attach("Counted", {"event": "fire"})
        world.idle()
    yield worlds[0], worlds[1]
    for world in worlds:
        world.close()


@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES)
def test_the_same_is_found_on_arrival_as_when_it_is_stored(
    pair: tuple[World, World], batches: list[tuple[bool, list[tuple[str | None, int]]]]
) -> None:
    for waited, records in batches:
        for world in pair:
            first = world.catalog.rows("Reports")
            rows = [{"id": f"r{first + n}", "etype": e, "severity": s} for n, (e, s) in enumerate(records)]
            world.arrive("Reports", *rows)
            if waited:
                settle(world)
    for world in pair:
        settle(world)
    for channel in ("OfType", "Liked"):
        new, old = (sorted(world.found(channel), key=repr) for world in pair)
        assert new == old
    counted = [sum(row["many"] for _, row in world.found("Counted")) for world in pair]
    assert counted[0] == counted[1]
    assert not any(execution.on_arrival for execution in pair[1].executions)
