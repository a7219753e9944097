"""What an edge is told of its own machine."""

from __future__ import annotations

import pytest

from tocsin.overlay.dialogue import Subscribe
from tocsin.overlay.edge import Edge
from tocsin.overlay.events import ClientLost, ClientSaid
from tocsin.overlay.server.driver import OverlayDriver
from tocsin.overlay.server.gauge import Gauge


async def test_an_edge_that_gets_nothing_any_more_is_said_to_match_as_quickly_as_it_has_subscriptions() -> None:
    edge = Edge("e", "h", "e.1")
    driver = OverlayDriver(edge)
    gauge = Gauge(driver, edge, 1e6, 1e9)
    first = gauge.measure(0.0, 0.0).matching_seconds
    for number in range(10):
        driver.tell(ClientSaid(number, Subscribe(f"s{number}", f"n > {number}")))
    assert gauge.measure(0.0, 0.0).matching_seconds == first
    driver.matched, driver.matching_seconds = 100, 5.0
    assert gauge.measure(0.0, 0.0).matching_seconds == pytest.approx(0.05)
    for number in range(10):
        driver.tell(ClientLost(number))
    assert gauge.measure(0.0, 0.0).matching_seconds == pytest.approx(0.05 / 10)
    assert gauge.measure(0.0, 0.0).matching_seconds == pytest.approx(0.05 / 10)
    driver.stop()
