"""That edges and clusters come to balance, on the virtual clock."""

from __future__ import annotations

import pytest

from tocsin.overlay.tuning import Tuning
from tocsin.simulate.overlay.brokers import Power
from tocsin.simulate.overlay.invariants import violations
from tocsin.simulate.overlay.system import POWERFUL, OverlaySystem

WEAK, STRONG = Power(0.002, 20_000.0), Power(0.001, 40_000.0)


def loaded(
    parents: dict[str, str | None], edges: dict[str, str], powers: dict[str, Power], seconds: float
) -> OverlaySystem:
    """Everybody comes to the first edge, and much is published for so long."""
    system = OverlaySystem(parents, edges, powers=powers)
    system.start_publisher("p", next(iter(parents)))
    first = next(iter(edges))
    for number in range(30):
        system.subscribe(f"s{number}", f"n >= {number / 3}", [first])

    def publish(number: int) -> None:
        if number < 10 * seconds:
            system.publish("p", n=number % 10)
            system.clock.after(0.1, publish, number + 1)

    publish(0)
    return system


@pytest.mark.slow
def test_edges_of_a_cluster_come_to_balance() -> None:
    system = loaded({"h": None}, {"a": "h", "b": "h"}, {"a": WEAK, "b": STRONG}, 510.0)
    system.advance(400.0)
    loads = [edge.core.surroundings.load() for edge in system.edges.values()]
    one, two = [load.metrics for load in loads if load]
    assert one.largest_difference(two, 0.1) <= 0.12
    assert all(len(edge.core.subscriptions) for edge in system.edges.values())
    for edge in system.edges.values():
        edge.power = POWERFUL
    system.advance(120.0)
    assert [text for text in violations(system) if "lost" in text or "twice" in text or " is on " in text] == []


def apart(system: OverlaySystem) -> float:
    """By how much the averages of the two clusters differ."""
    one, two = (head.core.federation.metrics() for head in system.heads.values())
    assert one
    assert two
    return one.largest_difference(two, Tuning().normal_delay)


@pytest.mark.slow
def test_clusters_come_to_balance_and_forget_each_other() -> None:
    edges = {"a": "h1", "b": "h1", "c": "h2", "d": "h2"}
    system = loaded({"h1": None, "h2": "h1"}, edges, dict.fromkeys(edges, WEAK), 1090.0)
    system.advance(60.0)
    assert apart(system) > Tuning().between_clusters.ratio
    system.advance(840.0)
    assert apart(system) <= Tuning().between_clusters.ratio
    assert all(len(edge.core.subscriptions) for edge in system.edges.values())
    for edge in system.edges.values():
        edge.power = POWERFUL
    system.advance(200.0)
    assert all(edge.core.surroundings.joined == [] for edge in system.edges.values())
    assert all(head.core.alliance.other is None for head in system.heads.values())
