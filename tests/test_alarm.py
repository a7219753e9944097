from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import pytest
import uvloop

from tocsin.alarm import Alarm

Loop = Callable[[], asyncio.AbstractEventLoop]

LOOPS: list[Loop] = [asyncio.new_event_loop, uvloop.new_event_loop]


def run(loop: Loop, work: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(work)


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_it_may_be_set_again_when_it_is_due_at_once(loop: Loop) -> None:
    async def work() -> None:
        rung = asyncio.Event()
        alarm, now = Alarm(rung.set), asyncio.get_running_loop().time()
        for at in (now, now - 1, now + 0.0001, now + 3600):
            alarm.set(at)
        await rung.wait()

    run(loop, work())


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_the_earliest_time_counts_and_it_rings_once(loop: Loop) -> None:
    async def work() -> None:
        rings, later = [], asyncio.Event()
        now = asyncio.get_running_loop().time()
        alarm, end = Alarm(lambda: rings.append(later.is_set())), Alarm(later.set)
        for seconds in (3600, 0.02, 0.01):
            alarm.set(now + seconds)
        end.set(now + 0.05)
        await later.wait()
        assert rings == [False]

    run(loop, work())


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_after_it_was_cancelled_it_can_be_set_again(loop: Loop) -> None:
    async def work() -> None:
        rung = asyncio.Event()
        alarm, now = Alarm(rung.set), asyncio.get_running_loop().time()
        alarm.set(now)
        alarm.cancel()
        alarm.set(now + 0.01)
        await rung.wait()

    run(loop, work())
