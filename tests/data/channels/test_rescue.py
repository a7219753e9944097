"""One record or one parameter that cannot be executed costs nobody else anything, on a real Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.data.world import DATASETS, World, reports
from tests.waiting import until
from tocsin.data.channels.apart import Apart
from tocsin.data.results import Results
from tocsin.errors import StorageError

pytestmark = pytest.mark.spark

SHARES = """
CREATE CONTINUOUS CHANNEL Shares(event STRING, part INT) AS
SELECT r.id, r.severity DIV part AS share FROM Reports r WHERE r.etype = event AND is_new(r);
"""
NUMBERS = """
CREATE CONTINUOUS CHANNEL Numbers(least INT) AS
SELECT r.id, CAST(r.etype AS INT) AS n FROM Reports r WHERE r.severity >= least AND is_new(r);
"""


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    world = World(spark, tmp_path / "data").start()
    world.apply(DATASETS + SHARES + NUMBERS)
    yield world
    world.close()


def ids(world: World, channel: str) -> list[tuple[int, str]]:
    return sorted((be, row["id"]) for be, row in world.found(channel))


def letters(world: World, channel: str) -> list[tuple[int, Any]]:
    rows = world.catalog.dead_letters.read(channel).to_pylist()
    return sorted((row["subscription"], row["record"]) for row in rows)


def test_one_bad_parameter_costs_nobody_else_anything(world: World) -> None:
    one, none, other = world.attach(
        "Shares", {"event": "fire", "part": 1}, {"event": "fire", "part": 0}, {"event": "flood", "part": 1}
    )
    world.put("Reports", *reports("fire", "flood"))
    world.wait_for("Shares", 2)
    world.idle()
    assert ids(world, "Shares") == [(one, "r0"), (other, "r1")]
    [execution] = world.executions
    assert list(execution.failing) == [none]
    assert "DIVIDE_BY_ZERO" in execution.failing[none]
    assert [be for be, _ in letters(world, "Shares")] == [none]
    assert world.shown("CHANNELS")["Shares"]["error"] == ""


def test_a_parameter_that_fails_again_and_again_is_set_aside_also_across_a_restart(world: World) -> None:
    good, bad = world.attach("Shares", {"event": "fire", "part": 1}, {"event": "fire", "part": 0})
    for number in range(3):
        world.put("Reports", *reports("fire", first=number))
        world.wait_for("Shares", number + 1)
    world.idle()
    assert world.shown("CHANNELS")["Shares"]["set_aside"] == 1
    [described] = world.apply("DESCRIBE CHANNEL Shares")[0].rows
    assert [row["be"] for row in described["failing"]] == [bad]
    world.restart()
    count = len(world.executions)
    world.put("Reports", *reports("fire", first=5))
    world.wait_for("Shares", 4)
    world.idle()
    assert [execution.failing for execution in world.executions[count:]] == [{}]
    # Given up and asked for again, it is known still; another definition is another chance.
    world.catalog.subscriptions.detach("b", [bad])
    [bad] = world.attach("Shares", {"event": "fire", "part": 0})
    assert world.shown("CHANNELS")["Shares"]["set_aside"] == 1
    world.apply(SHARES.replace("CREATE", "CREATE OR REPLACE").replace("r.severity DIV part", "r.severity + part"))
    assert world.shown("CHANNELS")["Shares"]["set_aside"] == 0
    world.put("Reports", *reports("fire", first=6))
    world.wait_for("Shares", 6)
    assert ids(world, "Shares")[-1] == (bad, "r6")
    assert good < bad


def test_one_bad_record_costs_only_itself(world: World) -> None:
    low, high = world.attach("Numbers", {"least": 0}, {"least": 3})
    world.put("Reports", *reports("1", "x", "3", "4"))
    world.wait_for("Numbers", 4)
    assert ids(world, "Numbers") == [(low, "r0"), (low, "r2"), (low, "r3"), (high, "r3")]
    [(be, record)] = letters(world, "Numbers")
    assert be == low
    assert '"id": "r1"' in record
    assert world.shown("CHANNELS")["Numbers"]["dead_letters"] == 1
    assert world.shown("CHANNELS")["Numbers"]["set_aside"] == 0


def test_nobody_is_told_of_another_s_values(world: World) -> None:
    world.apply(
        "CREATE CONTINUOUS CHANNEL Above(floor STRING) AS "
        "SELECT r.id FROM Reports r WHERE r.severity >= CAST(floor AS INT) AND is_new(r)"
    )
    values = ("0", "my secret", "1", "another secret")
    good, first, _, second = world.attach("Above", *({"floor": value} for value in values))
    world.put("Reports", *reports("fire"))
    world.wait_for("Above", 1)
    world.idle()
    [execution] = world.executions
    assert sorted(execution.failing) == sorted([first, second])
    assert "my secret" in execution.failing[first]
    assert "another secret" in execution.failing[second]
    assert "another" not in execution.failing[first]
    assert ids(world, "Above") == [(good, "r0")]


def test_a_crash_in_the_middle_of_it_neither_loses_nor_repeats(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = world.attach("Shares", {"event": "fire", "part": 1}, {"event": "fire", "part": 0})
    refused: list[int] = []
    real = Results.commit

    def refusing(self: Results, found: DataFrame, *rest: Any) -> Any:
        if letters(world, "Shares") and not refused:
            refused.append(1)
            raise StorageError("the machine stops here")
        return real(self, found, *rest)

    monkeypatch.setattr(Results, "commit", refusing)
    world.put("Reports", *reports("fire"))
    until(lambda: refused)
    world.restart()
    world.wait_for("Shares", 1)
    assert ids(world, "Shares") == [(one, "r0")]
    assert len(letters(world, "Shares")) == 1
    world.idle()
    assert [execution.number for execution in world.executions] == [1]


def test_what_is_not_the_data_s_fault_is_not_taken_apart(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []
    failures: list[int] = []
    real = Results.commit

    def full(self: Results, *rest: Any) -> Any:
        if len(failures) < 3:
            failures.append(1)
            raise StorageError("the disk is full")
        return real(self, *rest)

    monkeypatch.setattr(Results, "commit", full)
    monkeypatch.setattr(Apart, "__init__", lambda *_: tried.append(1))
    world.attach("Shares", {"event": "fire", "part": 1})
    world.put("Reports", *reports("fire"))
    world.wait_for("Shares", 1)
    assert tried == []


def test_what_fails_for_all_says_so_in_the_words_of_the_query(world: World) -> None:
    world.attach("Shares", {"event": "fire", "part": 0})
    world.put("Reports", *reports("fire"))
    error = until(lambda: world.shown("CHANNELS")["Shares"]["error"])
    assert error.startswith("[DIVIDE_BY_ZERO] Division by zero")
    assert "getResult" not in error
    assert world.catalog.results["Shares"].seen("Reports") == 0
    # As soon as there is somebody whom it works for, it goes on.
    [one] = world.attach("Shares", {"event": "fire", "part": 1})
    world.wait_for("Shares", 1)
    assert ids(world, "Shares") == [(one, "r0")]
