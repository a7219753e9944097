"""What an edge is told of its machine and of itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.waiting import until_async
from tocsin.overlay.detection import Availability
from tocsin.overlay.dialogue import HeadCursor, Passed, Subscribe
from tocsin.overlay.edge import Edge
from tocsin.overlay.events import Event, Gauged
from tocsin.overlay.messages import Control, Found, Mark, Routed
from tocsin.overlay.server import gauge
from tocsin.overlay.server.driver import OverlayDriver
from tocsin.overlay.server.gauge import Gauge, SubscriptionMemory
from tocsin.overlay.server.outgoing import Outgoing, encode

BANDWIDTH = 1000.0


class Recording(OverlayDriver):
    """A driver that remembers what was measured."""

    def __init__(self) -> None:
        self.edge = Edge("e", "h", "e.1")
        self.measured: list[Gauged] = []
        super().__init__(self.edge)

    def tell(self, event: Event) -> None:
        if isinstance(event, Gauged):
            self.measured.append(event)
        super().tell(event)

    async def next(self) -> Gauged:
        """What is measured from now on, over a whole span."""
        enough = len(self.measured) + 2
        await until_async(lambda: len(self.measured) >= enough)
        return self.measured[enough - 1]


@asynccontextmanager
async def measuring(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Recording]:
    monkeypatch.setattr(gauge, "GAUGE_SECONDS", 0.05)
    driver = Recording()
    task = asyncio.create_task(Gauge(driver, driver.edge, BANDWIDTH, 1e12).run())
    await until_async(lambda: driver.measured)
    yield driver
    task.cancel()
    await asyncio.wait([task])
    driver.stop()


async def test_an_edge_has_a_load_at_once_and_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    async with measuring(monkeypatch) as driver:
        first = driver.measured[0]
        assert (first.bandwidth, first.cpu, first.input_seconds, first.output_seconds) == (BANDWIDTH, 0.0, 0.0, 0.0)
        assert first.matching_seconds > 0
        assert 0 < first.memory < first.memory_bytes == 1e12
        assert driver.edge.surroundings.state() is Availability.OK


async def test_matching_is_what_publications_take_on_the_average(monkeypatch: pytest.MonkeyPatch) -> None:
    async with measuring(monkeypatch) as driver:
        for took, average in ((0.5, 0.5), (0.25, 0.375)):
            enough = len(driver.measured) + 1
            driver.matched, driver.matching_seconds = driver.matched + 4, driver.matching_seconds + 4 * took
            await until_async(lambda enough=enough: len(driver.measured) >= enough)  # type: ignore[misc]
            # The latest weighs more, by less than a second in thirty while the two follow each other.
            assert driver.measured[enough - 1].matching_seconds == pytest.approx(average, rel=0.2)


async def test_only_matching_counts_as_matching_and_all_that_is_sent_as_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with measuring(monkeypatch) as driver:
        link, client = Outgoing(10**6), Outgoing(10**6)
        driver.open_link("h", True, link)
        session = driver.open_client(client)
        driver.hear_client(session, Subscribe("s", "n > 1", {"h": HeadCursor(0, "h.1")}))
        (held,) = driver.edge.subscriptions.all
        missed = [Routed("h", number, "p", number, {"n": 5}) for number in (1, 2)]
        found = Found(held.fetch, "h", "h.1", {"h.1": 2}, 1, 2, 2, missed)
        driver.hear_link("h", link, Control({"to": "e"}, "h", found))
        assert driver.matched == 0
        sent = client.size
        assert driver.sent_bytes == sent > 0
        driver.hear_link("h", link, Mark("h", 2))
        driver.hear_link("h", link, Routed("h", 3, "p", 3, {"n": 5}))
        assert driver.matched == 1
        assert driver.sent_bytes > sent
        before = len(driver.measured)
        await until_async(lambda: len(driver.measured) > before)
        assert sum(each.sent or 0 for each in driver.measured) == driver.sent_bytes


def test_memory_that_subscriptions_left_behind_does_not_count() -> None:
    memory = SubscriptionMemory(1000.0)
    assert memory.measure(1000.0, 0) == (1000.0, 0.0)
    assert memory.measure(2000.0, 100) == (2000.0, 10.0)
    # The process keeps what they had.
    assert memory.measure(2000.0, 40) == (1400.0, 10.0)
    assert memory.measure(2000.0, 0) == (1000.0, 10.0)
    # Some of it is given back, and something else grows.
    assert memory.measure(1700.0, 40) == (1400.0, 10.0)
    assert memory.measure(2300.0, 40) == (1700.0, 10.0)
    assert memory.measure(2500.0, 120) == (2500.0, 12.5)


async def test_what_waits_for_clients_takes_its_time_at_the_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    async with measuring(monkeypatch) as driver:
        outgoing = Outgoing(10**6)
        driver.open_client(outgoing)
        text = encode(Passed("h", 1)).decode()
        for _ in range(100):
            outgoing.put(text)
        assert (await driver.next()).output_seconds == 100 * len(text) / BANDWIDTH


async def test_a_loop_that_is_held_up_is_late_and_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with measuring(monkeypatch) as driver:
        enough, until = len(driver.measured) + 1, time.process_time() + 0.2
        while time.process_time() < until:
            pass
        await until_async(lambda: len(driver.measured) >= enough)
        assert 0 < driver.measured[enough - 1].cpu <= 1
        assert driver.measured[enough - 1].input_seconds > 0.1


async def test_where_the_system_does_not_say_the_memory_it_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gauge, "_STATUS", Path("/proc/there/is/none"))
    async with measuring(monkeypatch) as driver:
        assert (driver.measured[0].memory, driver.measured[0].subscription_bytes) == (0.0, 0.0)
