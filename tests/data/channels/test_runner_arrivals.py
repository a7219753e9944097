"""Channels that are idle are matched while records are being stored; here with made-up executions."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, cast

import msgspec
import pyarrow as pa
import pytest

from tests.data.channels.running import Executions, Told, add, compiled
from tests.waiting import until
from tocsin.data.channels.execution import Executor
from tocsin.data.channels.runner import Runner
from tocsin.data.results import ChannelResults
from tocsin.settings import ChannelsSettings

ROWS = pa.table({"id": ["a"]})


class Dataset:
    """In the place of a table: a version that moves on, or is refused."""

    def __init__(self) -> None:
        self.version, self.snapshot = 0, None


@pytest.fixture
def reports() -> Dataset:
    return Dataset()


@pytest.fixture
def matching(executions: Executions, told: Told, reports: Dataset) -> Iterator[Runner]:
    """One that runs a channel at a time, on a dataset."""
    wanted = {"workers": 1, "retry_seconds": 0.01, "max_retry_seconds": 0.05, "slow_seconds": 600}
    runner = Runner(cast(Any, {"Reports": reports}), msgspec.convert(wanted, ChannelsSettings), told)
    runner.start(cast(Any, None), cast(Executor, executions))
    yield runner
    for gate in executions.gates.values():
        gate.set()
    runner.stop()


def add_parallel(runner: Runner, executions: Executions, name: str = "c") -> None:
    """Adds a channel that can be matched on arrival, and has seen all there is."""
    executions.without_work.add(name)
    parallel = msgspec.structs.replace(compiled(name), parallel=True)
    runner.add(parallel, cast(ChannelResults, None))
    until(lambda: is_idle(runner, name))


def is_idle(runner: Runner, name: str = "c") -> bool:
    with runner._changed:
        return runner._timetable[name].ready and math.isinf(runner._timetable[name].due)


def store(runner: Runner, reports: Dataset, meanwhile: Callable[[], object] = lambda: None) -> None:
    with runner.arriving("Reports", ROWS):
        meanwhile()
        reports.version += 1
    runner.committed("Reports")


def test_a_channel_that_is_idle_is_matched_while_records_are_stored(
    matching: Runner, executions: Executions, told: Told, reports: Dataset
) -> None:
    add_parallel(matching, executions)
    store(matching, reports, lambda: until(lambda: executions.runs == ["c"]))
    until(lambda: told.executions == [("c", 1)])
    until(lambda: is_idle(matching))
    assert executions.matched == [("c", 1, True)]
    store(matching, reports, lambda: until(lambda: executions.runs == ["c", "c"]))
    until(lambda: told.executions == [("c", 1), ("c", 2)])
    until(lambda: is_idle(matching))
    assert executions.runs == ["c", "c"], "what was matched on arrival is not looked at again"


def test_records_that_are_not_stored_are_matched_for_nothing(
    matching: Runner, executions: Executions, told: Told, reports: Dataset
) -> None:
    add_parallel(matching, executions)

    def refuse() -> None:
        until(lambda: executions.runs == ["c"])
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        store(matching, reports, refuse)
    until(lambda: executions.matched == [("c", 1, False)])
    until(lambda: is_idle(matching))
    assert (told.executions, matching.status("c").error) == ([], "")


def test_one_that_fails_on_arrival_is_executed_when_the_records_are_stored(
    matching: Runner, executions: Executions, told: Told, reports: Dataset
) -> None:
    add_parallel(matching, executions)
    executions.failures["c"] = deque([ValueError("on arrival")])
    store(matching, reports, lambda: until(lambda: executions.runs == ["c"] and is_idle(matching)))
    executions.without_work.clear()
    matching.committed("Reports")
    until(lambda: told.executions == [("c", 1)])
    assert executions.runs == ["c", "c"]
    assert told.failures == []


@pytest.mark.parametrize("why", ["held", "busy", "slow", "no room"])
def test_one_that_has_something_else_to_do_or_is_slow_is_executed_when_the_records_are_stored(
    why: str, matching: Runner, executions: Executions, told: Told, reports: Dataset
) -> None:
    add_parallel(matching, executions)
    busy = {"busy": "c", "no room": "other"}.get(why)
    if busy is not None:
        gate = executions.gate(busy)
        executions.without_work.discard(busy)
        matching.committed("Reports") if busy == "c" else add(matching, busy)
        until(lambda: executions.running == {busy})
    if why == "slow":
        matching._pool._turns.slowed("c")
    with matching.held("c") if why == "held" else nullcontext():
        store(matching, reports)
        assert executions.matched == []
        executions.without_work.clear()
    if busy is not None:
        gate.set()
    matching.committed("Reports")
    until(lambda: ("c", 1) in told.executions)
    assert executions.matched == []


def test_one_that_cannot_say_whether_it_can_be_matched_does_not_keep_records_from_being_stored(
    matching: Runner, executions: Executions, told: Told, reports: Dataset
) -> None:
    add_parallel(matching, executions)
    executions.lost.add("c")
    store(matching, reports)
    assert reports.version == 1
    until(lambda: "no such channel" in matching.status("c").error)
    executions.lost.clear()
    executions.without_work.clear()
    until(lambda: told.executions)
