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
from tocsin.data.channels.letters import DeadLetters
from tocsin.data.channels.strikes import Strikes
from tocsin.data.results import ChannelResults
from tocsin.data.store import SetAside
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
FORMATS = """
CREATE CONTINUOUS CHANNEL Formats(event STRING, form STRING) AS
SELECT r.id, format_string(form, r.severity) AS told FROM Reports r WHERE r.etype = event AND is_new(r);
"""
LIKENESS = """
CREATE CONTINUOUS CHANNEL Likeness(least INT) AS
SELECT r.id FROM Reports r WHERE r.severity >= least AND r.etype RLIKE '^(a|b)*$' AND is_new(r);
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
    rows = world.catalog.live.dead_letters.read(channel).to_pylist()
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


def test_a_parameter_on_which_java_itself_fails_costs_nobody_else_anything(world: World) -> None:
    world.apply(FORMATS)
    good, bad = world.attach("Formats", {"event": "fire", "form": "%d"}, {"event": "fire", "form": "%y"})
    world.put("Reports", *reports("fire"))
    world.wait_for("Formats", 1)
    world.idle()
    assert ids(world, "Formats") == [(good, "r0")]
    [execution] = world.executions
    assert list(execution.failing) == [bad]


def test_a_record_on_which_java_runs_out_of_stack_is_left_out_and_spark_goes_on(world: World) -> None:
    world.apply(LIKENESS)
    [be] = world.attach("Likeness", {"least": 0})
    world.put("Reports", *reports("ab" * 100_000, "ab"))
    world.wait_for("Likeness", 1)
    world.idle()
    assert ids(world, "Likeness") == [(be, "r1")]
    assert [at for at, _ in letters(world, "Likeness")] == [be]


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
    world.catalog.live.subscriptions.detach("b", [bad])
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


FRIENDS = """
CREATE CONTINUOUS CHANNEL Friends(least INT) AS
SELECT r.id, p.name FROM Reports r, People p WHERE CAST(p.likes AS INT) >= least AND is_new(r);
"""


def people(**likes: str) -> list[dict[str, object]]:
    return [{"name": name, "likes": each} for name, each in likes.items()]


def friends(world: World) -> list[tuple[int, str, str]]:
    return sorted((be, row["id"], row["name"]) for be, row in world.found("Friends"))


def test_one_bad_record_of_a_dataset_that_is_read_as_a_whole_costs_only_itself(world: World) -> None:
    world.apply(FRIENDS)
    world.put("People", *people(ann="1", bob="x", cid="3"))
    low, high = world.attach("Friends", {"least": 0}, {"least": 2})
    world.put("Reports", *reports("fire"))
    world.wait_for("Friends", 3)
    world.idle()
    assert friends(world) == [(low, "r0", "ann"), (low, "r0", "cid"), (high, "r0", "cid")]
    assert sorted(be for be, _ in letters(world, "Friends")) == [low, high]
    [execution] = world.executions
    assert sorted(execution.failing) == [low, high]
    assert all("CAST_INVALID_INPUT" in why for why in execution.failing.values())
    assert world.shown("CHANNELS")["Friends"]["set_aside"] == 0


def test_a_bad_record_that_is_known_is_left_out_from_the_beginning_until_it_is_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply(FRIENDS)
    world.put("People", *people(ann="1", bob="x"))
    [one] = world.attach("Friends", {"least": 0})
    world.put("Reports", *reports("fire"))
    world.wait_for("Friends", 1)
    world.idle()
    apart: list[object] = []
    real = Apart.__init__

    def noted(self: Apart, *arguments: Any) -> None:
        apart.append(self)
        real(self, *arguments)

    monkeypatch.setattr(Apart, "__init__", noted)
    world.put("People", *people(bob="5"))
    world.put("Reports", *reports("fire", first=1))
    world.wait_for("Friends", 3)
    assert friends(world)[1:] == [(one, "r1", "ann"), (one, "r1", "bob")]
    assert not apart
    # Whoever comes later is judged by what fails with them.
    [other] = world.attach("Friends", {"least": 0})
    assert other == one
    [other] = world.attach("Friends", {"least": 2})
    world.put("Reports", *reports("fire", first=2))
    world.wait_for("Friends", 6)
    world.idle()
    assert apart
    assert friends(world)[3:] == [(one, "r2", "ann"), (one, "r2", "bob"), (other, "r2", "bob")]
    assert [be for be, _ in letters(world, "Friends")] == [one, other]


def test_a_bad_record_among_too_many_to_look_at_stops_the_channel_and_everybody_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.data.channels.apart.MOST_RECORDS", 2)
    world.apply(FRIENDS)
    world.put("People", *people(ann="1", bob="x", cid="3"))
    [one] = world.attach("Friends", {"least": 0})
    world.put("Reports", *reports("fire"))
    channel, reason = until(lambda: world.failures and world.failures[0])
    assert channel == "Friends"
    assert "[CAST_INVALID_INPUT]" in reason
    assert "'x'" not in reason, "nobody is told of another's values"
    assert world.shown("CHANNELS")["Friends"]["set_aside"] == 0
    # Once they can be looked at, it goes on.
    monkeypatch.undo()
    world.wait_for("Friends", 2)
    assert friends(world) == [(one, "r0", "ann"), (one, "r0", "cid")]


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
    real = ChannelResults.commit

    def refusing(self: ChannelResults, found: DataFrame, *rest: Any) -> Any:
        if letters(world, "Shares") and not refused:
            refused.append(1)
            raise StorageError("the machine stops here")
        return real(self, found, *rest)

    monkeypatch.setattr(ChannelResults, "commit", refusing)
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
    real = ChannelResults.commit

    def full(self: ChannelResults, *rest: Any) -> Any:
        if len(failures) < 3:
            failures.append(1)
            raise StorageError("the disk is full")
        return real(self, *rest)

    monkeypatch.setattr(ChannelResults, "commit", full)
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
    assert world.catalog.live["Shares"].results.seen_version("Reports") == 0
    # As soon as there is somebody whom it works for, it goes on.
    [one] = world.attach("Shares", {"event": "fire", "part": 1})
    world.wait_for("Shares", 1)
    assert ids(world, "Shares") == [(one, "r0")]


ABOVE = """
CREATE CONTINUOUS CHANNEL Above(floor STRING) AS
SELECT r.id FROM Reports r WHERE r.severity >= CAST(floor AS INT) AND is_new(r);
"""


class Judged:
    """Whose executions were taken apart, and how often one failed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.apart: list[list[int]] = []
        self.failures = 0
        begin, fail = Apart.__init__, Strikes.failed

        def begun(apart: Apart, spark: SparkSession, compiled: Any, views: Any, ids: Any) -> None:
            self.apart.append(ids.tolist())
            begin(apart, spark, compiled, views, ids)

        def failed(strikes: Strikes, channel: str) -> bool:
            self.failures += 1
            return fail(strikes, channel)

        monkeypatch.setattr(Apart, "__init__", begun)
        monkeypatch.setattr(Strikes, "failed", failed)


def test_ever_new_parameters_that_fail_make_nobody_else_s_executions_fail(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply(ABOVE)
    good, first = world.attach("Above", {"floor": "0"}, {"floor": "x"})
    world.put("Reports", *reports("fire"))
    world.wait_for("Above", 1)
    world.idle()
    judged, bad = Judged(monkeypatch), []
    for number in range(1, 4):
        bad += world.attach("Above", {"floor": f"x{number}"})
        world.put("Reports", *reports("fire", first=number))
        world.wait_for("Above", number + 1)
        world.idle()
    assert ids(world, "Above") == [(good, f"r{number}") for number in range(4)]
    assert judged.failures == 0
    assert judged.apart
    assert not any(good in some for some in judged.apart)
    assert all(be in execution.failing for be, execution in zip([first, *bad], world.executions, strict=True))
    assert not any(good in execution.failing for execution in world.executions)
    assert all("CAST_INVALID_INPUT" in why for execution in world.executions for why in execution.failing.values())
    # Whoever comes meanwhile and does not fail gets what is theirs, with everybody else.
    [other] = world.attach("Above", {"floor": "-1"})
    world.put("Reports", *reports("fire", first=4))
    world.wait_for("Above", 6)
    assert ids(world, "Above")[4:] == [(good, "r4"), (other, "r4")]
    assert judged.failures == 0


def test_who_was_served_before_does_not_wait_until_it_is_known_who_of_many_newcomers_fails(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply(ABOVE)
    [good] = world.attach("Above", {"floor": "0"})
    world.put("Reports", *reports("fire"))
    world.wait_for("Above", 1)
    world.idle()
    judged = Judged(monkeypatch)
    many = world.attach("Above", *({"floor": f"x{number}"} for number in range(30)))
    world.put("Reports", *reports("fire", first=1))
    world.wait_for("Above", 2)
    world.idle()
    assert ids(world, "Above") == [(good, "r0"), (good, "r1")]
    assert judged.failures == 1
    assert judged.apart == [many]


def test_what_cannot_be_noted_of_who_fails_on_trial_does_not_keep_the_execution_from_being_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply(ABOVE)
    good, _ = world.attach("Above", {"floor": "0"}, {"floor": "x"})
    world.put("Reports", *reports("fire"))
    world.wait_for("Above", 1)
    world.idle()

    def full(*_: Any) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(DeadLetters, "write", full)
        patched.setattr(SetAside, "put", full)
        world.attach("Above", {"floor": "y"})
        world.put("Reports", *reports("fire", first=1))
        until(lambda: len(world.executions) == 2)
    assert world.executions[1].failing == {}
    world.put("Reports", *reports("fire", first=2))
    world.wait_for("Above", 3)
    assert ids(world, "Above") == [(good, f"r{number}") for number in range(3)]


def test_of_very_many_who_come_and_fail_some_wait_and_nobody_else_does(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(spark, tmp_path / "other", channels={"retry_seconds": 0.05, "trial_queries": 6}).start()
    try:
        world.apply(DATASETS + SHARES)
        good, _ = world.attach("Shares", {"event": "fire", "part": 1}, {"event": "flood", "part": 0})
        world.put("Reports", *reports("fire", "flood"))
        world.wait_for("Shares", 1)
        world.idle()
        judged = Judged(monkeypatch)
        many = world.attach("Shares", *({"event": event, "part": 0} for event in ("fire", "a", "b", "c", "d")))
        world.put("Reports", *reports("fire", "a", "b", "c", "d", first=2))
        world.wait_for("Shares", 2)
        world.idle()
        assert ids(world, "Shares") == [(good, "r0"), (good, "r2")]
        assert judged.failures == 0
        [execution] = world.executions[1:]
        assert sorted(execution.failing) == sorted(many)
    finally:
        world.close()


def test_a_record_that_fails_for_all_is_found_though_some_are_on_trial(world: World) -> None:
    [low] = world.attach("Numbers", {"least": 0})
    world.put("Reports", *reports("1", "x"))
    world.wait_for("Numbers", 1)
    world.idle()
    [high] = world.attach("Numbers", {"least": 1})
    world.put("Reports", *reports("1", "y", "2", "3", first=2))
    world.wait_for("Numbers", 6)
    world.idle()
    assert ids(world, "Numbers") == sorted(
        [(low, "r0"), (low, "r2"), (low, "r4"), (low, "r5"), (high, "r4"), (high, "r5")]
    )
