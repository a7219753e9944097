"""The driver carries out what the core wants in order, whatever happens meanwhile, and wakes it in time."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from tocsin.broker import actions, events
from tocsin.broker.core import BrokerCore
from tocsin.broker.server.connection import SubscriberConnection
from tocsin.broker.server.driver import BrokerDriver
from tocsin.model import control


class Scripted:
    """A core that wants what the test says, and remembers what it was told."""

    def __init__(self, wanted: dict[type[events.Event], list[actions.Action]], wakes: list[float]) -> None:
        self.wanted, self.wakes, self.told = wanted, wakes, list[events.Event]()
        self.ticked = asyncio.Event()

    def handle(self, now: float, event: events.Event) -> list[actions.Action]:
        self.told.append(event)
        if isinstance(event, events.BatchFailed):
            raise ZeroDivisionError
        if isinstance(event, events.Tick):
            self.ticked.set()
        return self.wanted.get(type(event), [])

    def wake(self) -> float | None:
        return self.wakes.pop() if self.wakes else None


class Peer:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, message: Any) -> None:
        self.sent.append(message)


class Closing:
    """A connection whose close is told to the driver at once."""

    def __init__(self, driver: BrokerDriver) -> None:
        self._driver = driver

    def close(self, code: int, reason: str) -> None:
        self._driver.closed(1)


def driven(core: Scripted) -> tuple[BrokerDriver, Peer]:
    driver, peer = BrokerDriver(cast(BrokerCore, core)), Peer()
    connection = cast(SubscriberConnection, Closing(driver))
    driver.start(lambda _: connection, {"data": peer, "coordinator": peer}, lambda _: None, lambda _: None)
    return driver, peer


async def test_what_happens_while_actions_are_carried_out_waits_for_the_rest_of_them() -> None:
    first, second = control.Ping(1), control.Ping(2)
    core = Scripted(
        {
            events.Opened: [actions.Close(1, 4400, "invalid"), actions.ToData(first)],
            events.Closed: [actions.ToData(second)],
        },
        [],
    )
    driver, peer = driven(core)
    driver.opened(1)
    assert peer.sent == [first, second]


async def test_the_core_is_woken_when_it_asks_to_be() -> None:
    core = Scripted({}, [asyncio.get_running_loop().time()])
    driver, _ = driven(core)
    driver.opened(1)
    await asyncio.wait_for(core.ticked.wait(), 20)
    driver.stop()


async def test_a_fault_of_the_core_does_not_end_the_driver() -> None:
    core = Scripted({events.Opened: [actions.ToData(control.Ping(1))]}, [])
    driver, peer = driven(core)
    driver.feed(events.BatchFailed(1, "busy", "later"))
    driver.opened(1)
    assert peer.sent == [control.Ping(1)]
