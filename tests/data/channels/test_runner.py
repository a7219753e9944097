"""Channels run when they are due, each once at a time and none at another's expense; here with made-up executions."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import msgspec
import pytest

from tests.data.channels.running import SECONDS, Executions, Told, add
from tests.waiting import until
from tocsin.data.channels.execution import Execution, Executor
from tocsin.data.channels.runner import Runner
from tocsin.errors import UnavailableError
from tocsin.settings import ChannelsSettings


@pytest.fixture
def runner(executions: Executions, told: Told) -> Iterator[Runner]:
    settings = msgspec.convert({"workers": 2, "retry_seconds": 0.01, "max_retry_seconds": 0.05}, ChannelsSettings)
    runner = Runner({}, settings, told, told.failing)
    runner.start(cast(Any, None), cast(Executor, executions))
    yield runner
    for gate in executions.gates.values():
        gate.set()
    runner.stop()


def test_a_continuous_channel_runs_when_its_dataset_has_news(
    runner: Runner, executions: Executions, told: Told
) -> None:
    add(runner, "c")
    until(lambda: told.executions == [("c", 1)])
    until(lambda: runner.status("c").state == "waiting")
    runner.committed("Others")
    runner.committed("Reports")
    until(lambda: told.executions == [("c", 1), ("c", 2)])
    assert runner.status("c").last_seconds == 0.5


def test_a_repetitive_channel_runs_again_and_again(runner: Runner, told: Told) -> None:
    add(runner, "r", 0.02)
    until(lambda: len(told.executions) >= 5)
    assert told.executions[:5] == [("r", n) for n in range(1, 6)]


def test_news_during_an_execution_bring_another_one(runner: Runner, executions: Executions, told: Told) -> None:
    gate = executions.gate("c")
    add(runner, "c")
    until(lambda: executions.running)
    runner.committed("Reports")
    gate.set()
    until(lambda: told.executions == [("c", 1), ("c", 2)])


def test_a_long_execution_delays_its_channel_is_counted_and_lets_others_go_on(
    runner: Runner, executions: Executions, told: Told
) -> None:
    gate = executions.gate("long")
    add(runner, "long", 0.02)
    add(runner, "quick", 0.02)
    until(lambda: len([n for n, _ in told.executions if n == "quick"]) >= 5)
    assert executions.runs.count("long") == 1
    assert runner.status("long").state == "running"
    gate.set()
    until(lambda: ("long", 2) in told.executions)
    assert runner.status("long").missed >= 1


def test_a_failing_channel_says_so_is_tried_again_and_recovers(
    runner: Runner, executions: Executions, told: Told
) -> None:
    gate = executions.gate("bad")
    executions.failures["bad"] = deque([ValueError("first line\nsecond line")] * 3)
    add(runner, "bad")
    add(runner, "good", 0.02)
    gate.set()
    until(lambda: runner.status("bad").error == "first line")
    until(lambda: ("bad", 1) in told.executions)
    until(lambda: (runner.status("bad").state, runner.status("bad").error) == ("waiting", ""))
    assert executions.runs.count("bad") == 4
    assert ("good", 1) in told.executions
    # Those who subscribe are told once it lasts, and nothing of anybody's values.
    [(channel, reason)] = told.failures
    assert channel == "bad"
    assert "tried again" in reason
    assert "first line" not in reason


def test_a_channel_that_cannot_say_whether_it_has_work_does_not_stop_the_others(
    runner: Runner, executions: Executions, told: Told
) -> None:
    executions.lost.add("lost")
    add(runner, "lost")
    add(runner, "good", 0.02)
    until(lambda: "no such channel" in runner.status("lost").error)
    until(lambda: ("good", 3) in told.executions)
    executions.lost.clear()
    until(lambda: ("lost", 1) in told.executions)


def test_a_channel_without_work_does_not_run(runner: Runner, executions: Executions, told: Told) -> None:
    executions.without_work.add("idle")
    add(runner, "idle")
    add(runner, "good", 0.02)
    until(lambda: ("good", 2) in told.executions)
    assert "idle" not in executions.runs
    assert runner.status("idle").state == "waiting"


def test_executions_are_told_of_in_their_order_before_the_channel_runs_again(
    runner: Runner, executions: Executions, told: Told
) -> None:
    telling, go_on = threading.Event(), threading.Event()

    def slow(execution: Execution) -> None:
        if execution.number == 1:
            telling.set()
            assert go_on.wait(SECONDS)

    told.first = slow
    add(runner, "c")
    assert telling.wait(SECONDS)
    runner.committed("Reports")
    assert runner.status("c").state == "running"
    go_on.set()
    until(lambda: len(told.executions) == 2)
    assert told.executions == [("c", 1), ("c", 2)]


def test_an_execution_that_cannot_be_told_of_does_not_stop_the_channel(runner: Runner, told: Told) -> None:
    def refusing(execution: Execution) -> None:
        if execution.number == 1:
            raise RuntimeError("nobody listens")

    told.first = refusing
    add(runner, "r", 0.02)
    until(lambda: ("r", 2) in told.executions)
    assert runner.status("r").error == ""


def test_removing_a_channel_cancels_its_execution_and_forgets_it(
    runner: Runner, executions: Executions, told: Told
) -> None:
    executions.gate("c")
    add(runner, "c")
    until(lambda: executions.running)
    runner.remove("c")
    assert (executions.cancelled, told.executions, executions.forgotten) == (["c"], [], ["c"])
    assert runner.status("c").state == "stopped"
    runner.committed("Reports")
    assert executions.runs == ["c"]


def test_two_slow_channels_keep_only_each_other_waiting(executions: Executions, told: Told) -> None:
    settings = msgspec.convert({"workers": 2, "slow_seconds": 0.05}, ChannelsSettings)
    runner = Runner({}, settings, told)
    runner.start(cast(Any, None), cast(Executor, executions))
    gates = [executions.gate(name) for name in ("slow1", "slow2")]
    for name in ("slow1", "slow2"):
        add(runner, name)
    until(lambda: executions.running == {"slow1", "slow2"})
    add(runner, "quick", 0.02)
    until(lambda: ("quick", 5) in told.executions)
    assert executions.running >= {"slow1", "slow2"}
    for gate in gates:
        gate.set()
    until(lambda: {("slow1", 1), ("slow2", 1)} <= set(told.executions))
    # Known as slow, they take turns from now on.
    for gate in gates:
        gate.clear()
    runner.committed("Reports")
    until(lambda: executions.running & {"slow1", "slow2"})
    count = len(told.executions)
    until(lambda: len(told.executions) > count + 5)
    assert len(executions.running & {"slow1", "slow2"}) == 1
    for gate in gates:
        gate.set()
    until(lambda: {("slow1", 2), ("slow2", 2)} <= set(told.executions))
    runner.stop()


def test_an_execution_that_takes_too_long_is_cancelled_reported_and_tried_again(
    executions: Executions, told: Told
) -> None:
    settings = msgspec.convert({"workers": 1, "retry_seconds": 0.01, "execution_seconds": 0.05}, ChannelsSettings)
    runner = Runner({}, settings, told)
    runner.start(cast(Any, None), cast(Executor, executions))
    executions.gate("endless")
    add(runner, "endless")
    until(lambda: "took longer than 0.05 s" in runner.status("endless").error)
    assert executions.cancelled == ["endless"]
    executions.cancelled.clear()
    until(lambda: ("endless", 1) in told.executions)
    until(lambda: runner.status("endless").error == "")
    runner.stop()


def test_who_waited_for_one_that_took_too_long_has_its_time_anew(executions: Executions, told: Told) -> None:
    settings = msgspec.convert({"workers": 2, "retry_seconds": 60, "execution_seconds": 3}, ChannelsSettings)
    runner = Runner({}, settings, told)
    runner.start(cast(Any, None), cast(Executor, executions))
    executions.gate("endless")
    starved = executions.gate("starved")
    add(runner, "endless")
    until(lambda: executions.running == {"endless"})
    # Long enough after it that nobody takes them for overdue together, however late they look.
    until(lambda: time.monotonic() - runner._pool.running["endless"].since > 1.5)
    add(runner, "starved")
    until(lambda: runner.status("endless").error)
    with runner._changed:
        assert runner._pool.running["starved"].ends_at - runner._pool.running["starved"].since > 3
    starved.set()
    until(lambda: ("starved", 1) in told.executions)
    assert executions.cancelled == ["endless"]
    runner.stop()


def test_a_held_channel_does_not_run_and_does_not_hold_up_anybody(
    runner: Runner, executions: Executions, told: Told
) -> None:
    add(runner, "c")
    add(runner, "other", 0.02)
    until(lambda: ("c", 1) in told.executions)
    with runner.held("c"):
        runner.committed("Reports")
        count = len(told.executions)
        until(lambda: len(told.executions) > count + 3)
        assert executions.runs.count("c") == 1
        assert runner.status("c").state == "waiting"
    until(lambda: ("c", 2) in told.executions)


def test_a_new_definition_takes_the_place_of_the_old_one_between_executions(
    runner: Runner, executions: Executions, told: Told
) -> None:
    gate = executions.gate("c")
    add(runner, "c")
    until(lambda: executions.running)
    with ThreadPoolExecutor(1) as thread:
        adding = thread.submit(add, runner, "c", 0.02)
        assert not adding.done()
        gate.set()
        adding.result(SECONDS)
    until(lambda: ("c", 3) in told.executions)


def test_stopping_cancels_what_is_at_hand_and_leaves_the_rest(executions: Executions, told: Told) -> None:
    settings = msgspec.convert({"workers": 1, "retry_seconds": 0.01}, ChannelsSettings)
    runner = Runner({}, settings, told)
    executions.gate("c0")
    for number in range(3):
        add(runner, f"c{number}")
    runner.start(cast(Any, None), cast(Executor, executions))
    until(lambda: executions.running == {"c0"})
    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(add, runner, "c0")
        stopping = threads.submit(runner.stop)
        with pytest.raises(UnavailableError, match="the data cluster is stopping"):
            waiting.result(SECONDS)
        stopping.result(SECONDS)
    assert (executions.runs, told.executions) == (["c0"], [])
    assert "c0" in executions.cancelled
    assert not runner._thread.is_alive()


def test_a_runner_that_was_never_started_can_be_stopped(executions: Executions, told: Told) -> None:
    runner = Runner({}, ChannelsSettings(), told)
    add(runner, "c")
    runner.stop()
    assert executions.runs == []
