"""The driver around the core: what fails there ends either nothing or everything, and is said."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import pytest

from tests.coordinator.manual import START, ManualCoordinator, planners
from tests.coordinator.test_plans import RATES
from tests.waiting import until_async
from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.model.plan import Plan
from tocsin.balance.model.problem import Problem
from tocsin.coordinator.actions import Action
from tocsin.coordinator.answers import NetworkStatus
from tocsin.coordinator.balancing import Planners
from tocsin.coordinator.events import ApplyPlan, AskStatus, Event, Lost, ShowPlan, SignOfLife
from tocsin.coordinator.server.driver import CoordinatorDriver, SteadyClock
from tocsin.errors import BusyError, UnavailableError
from tocsin.model.coordination import Load


class Still(SteadyClock):
    """Time as the coordinator has it."""

    def __call__(self) -> float:
        return START


@dataclass(frozen=True)
class Broken:
    """A policy of one's own with a mistake."""

    name: str = "broken"

    def plan(self, problem: Problem) -> Plan:
        raise ZeroDivisionError(f"{problem.workload.brokers} / 0")


def crowd(chosen: Planners) -> ManualCoordinator:
    """Eight subscribers on "a", and a broker "b" with nobody."""
    coordinator = ManualCoordinator(planners=chosen)
    coordinator.hello("a")
    for n in range(8):
        coordinator.settle(f"p{n}", n)
    coordinator.hello("b")
    for broker in "ab":
        coordinator.say(broker, Load(0.0, 0.0, RATES))
    return coordinator


def drive(coordinator: ManualCoordinator, seconds: float = 30.0, most: int = 100) -> CoordinatorDriver:
    return CoordinatorDriver(coordinator.core, coordinator.store, Still(), seconds, most)


async def ended(running: asyncio.Task[None]) -> None:
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_a_planner_that_fails_moves_nobody_and_the_coordinator_goes_on() -> None:
    coordinator = crowd(Planners(Broken(), Broken(), Thresholds(cool_down=0, settle=0)))
    driver = drive(coordinator)
    running = asyncio.create_task(driver.run())
    for request in (ShowPlan, ApplyPlan):
        answer = await driver.ask(request)
        assert "the planner failed: ZeroDivisionError; see the log" in str(answer)
    status = await driver.ask(AskStatus)
    assert isinstance(status, NetworkStatus)
    assert (status.subscribers, status.moving, status.waiting) == (8, 0, 0)
    await ended(running)


async def test_a_core_that_fails_ends_the_coordinator_and_hears_no_more() -> None:
    driver = drive(crowd(planners()), seconds=0.01)
    running = asyncio.create_task(driver.run())
    driver.tell(Lost(cast(int, ["no number"])))
    with pytest.raises(TypeError, match="unhashable"):
        await running
    with pytest.raises(UnavailableError, match=r"no answer within 0\.01 s"):
        await driver.ask(AskStatus)


async def test_more_calls_than_may_wait_are_refused_at_once() -> None:
    driver = drive(crowd(planners()), most=0)
    with pytest.raises(BusyError, match="too many calls are waiting"):
        await driver.ask(AskStatus)


class Jumping(SteadyClock):
    """Goes on from where the coordinator's time stands still, and can be held up."""

    def __init__(self) -> None:
        super().__init__()
        self._began, self.lost = super().__call__(), 0.0

    def __call__(self) -> float:
        return START + super().__call__() - self._began + self.lost


async def test_after_it_was_held_up_brokers_are_heard_out_before_they_are_taken_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coordinator, clock, seen = crowd(planners()), Jumping(), list[str]()
    handle = coordinator.core.handle

    def note(now: float, event: Event) -> list[Action]:
        seen.append(type(event).__name__)
        return handle(now, event)

    monkeypatch.setattr(coordinator.core, "handle", note)
    driver = CoordinatorDriver(coordinator.core, coordinator.store, clock, 30.0, 100)
    running = asyncio.create_task(driver.run())
    clock.lost = 60.0
    # What "a" has said is read first, that of "b" comes after the time at which the core wanted to be woken.
    driver.tell(SignOfLife(coordinator.links["a"]))
    for _ in range(10):
        await asyncio.sleep(0)
    driver.tell(SignOfLife(coordinator.links["b"]))
    await until_async(lambda: "Tick" in seen)
    assert seen[:3] == ["SignOfLife", "SignOfLife", "Tick"]
    assert [coordinator.core._parts.registry.alive(broker) for broker in "ab"] == [True, True]
    await ended(running)
