"""The coordinator reckons with true loads: also just after a move, and when another broker attaches."""

from __future__ import annotations

import pytest

from tocsin.broker.limits import BrokerLimits
from tocsin.coordinator.events import Balance, Drain
from tocsin.model.weight import AROUND
from tocsin.simulate.network import Conditions
from tocsin.simulate.system import Setup, System

PERIOD, TRUE = 10.0, 600.0
BROKERS = ("a", "b", "x")


def system(limits: BrokerLimits | None = None) -> System:
    setup = Setup(conditions=Conditions(latency=0.001, spread=0.0), brokers=limits or BrokerLimits())
    made = System(list(BROKERS), 1, setup)
    made.cluster.size = lambda be, execution: int(TRUE * PERIOD) - AROUND
    made.advance(1.0)
    made.ask(Balance(0, False))
    return made


def play(system: System, periods: int) -> list[int]:
    """Runs the channel for a while; what the coordinator reckons with, every second."""
    rates = []
    for _ in range(periods):
        system.execute("c")
        for _ in range(int(PERIOD)):
            system.advance(1.0)
            rates.append(system.coordinator.core.view.rate(1))
    return rates


def settled(world: System) -> None:
    world.join("ann")
    world.subscribe("ann", "c", v=1)
    play(world, 10)


def test_a_rate_stays_what_it_is_when_everybody_moves_again_and_again() -> None:
    world = system()
    settled(world)
    for broker in BROKERS * 2:
        world.ask(Drain(0, broker))
        rates = play(world, 3)
        world.ask(Drain(0, broker, False))
        assert [min(rates), max(rates)] == pytest.approx([TRUE, TRUE], rel=0.02)
    assert world.coordinator.core.view.moves_made >= 3


def test_a_rate_stays_what_it_is_when_other_brokers_attach() -> None:
    world = system()
    settled(world)
    for name in ("bob", "cid"):
        world.join(name)
        world.subscribe(name, "c", v=1)
        rates = play(world, 3)
        assert [min(rates), max(rates)] == pytest.approx([TRUE, TRUE], rel=0.02)
    assert len(world.cluster.attached[1]) == 3


def test_a_rate_stays_what_it_is_when_its_broker_dies() -> None:
    world = system()
    settled(world)
    at = world.coordinator.core.view.assignment("ann").broker
    assert at is not None
    world.brokers[at].crash()
    rates = play(world, 6)
    assert [min(rates), max(rates)] == pytest.approx([TRUE, TRUE], rel=0.02)


@pytest.mark.parametrize("period", [10.0, pytest.param(300.0, marks=pytest.mark.slow)])
def test_what_brokers_measure_is_what_the_coordinator_reckons_with(period: float) -> None:
    world = system()
    for name in ("ann", "bob", "cid", "dan"):
        world.join(name)
        world.subscribe(name, "c", v=1)
        world.subscribe(name, "c", v=len(name + name[0]))
    for _ in range(20):
        world.execute("c")
        world.advance(period)
    core = world.coordinator.core
    figures = core.view.live.figures()
    for name, broker in world.brokers.items():
        at = core.view.live.brokers.tolist().index(core.view.broker_number(name))
        planned = float(figures.incoming[at]), float(figures.outgoing[at])
        assert broker.core.load(world.clock.now) == pytest.approx(planned, rel=0.02)


def deviations(world: System) -> list[float]:
    """How far measured and planned loads are apart, in parts of the mean load."""
    members = [world.coordinator.core.view.registry.member(name) for name in BROKERS]
    mean = sum(member.deviation.planned for member in members) / len(members)
    return [abs(member.deviation.measured - member.deviation.planned) / mean for member in members]


def test_moves_and_people_who_catch_up_make_planned_and_measured_differ_by_little_and_not_for_long() -> None:
    world = system()
    for number in range(6):
        world.join(f"p{number}")
        world.subscribe(f"p{number}", "c", v=number % 3)
    play(world, 12)
    assert max(deviations(world)) < 0.1
    for broker in BROKERS:
        world.ask(Drain(0, broker))
        play(world, 4)
        world.ask(Drain(0, broker, False))
        assert max(deviations(world)) < 0.25
    world.crash_person("p0")
    play(world, 12)
    world.join("p0")
    play(world, 1)
    assert max(deviations(world)) > 0.5, "what it catches up with is measured, though not planned"
    for _ in range(30):
        play(world, 1)
        assert world.coordinator.core.problems == []
    assert max(deviations(world)) < 0.1


@pytest.mark.parametrize("alone", [True, False], ids=["pulled for one", "from the cache"])
def test_what_somebody_catches_up_with_counts_where_it_is_sent_and_where_it_is_pulled(alone: bool) -> None:
    world = system()
    settled(world)
    at = str(world.coordinator.core.view.assignment("ann").broker)
    for broker in () if alone else sorted({*BROKERS} - {at}):
        world.ask(Drain(0, broker))
    if not alone:
        world.join("bob")
        world.subscribe("bob", "c", v=1)
    world.crash_person("ann")
    play(world, 20)
    world.join("ann")
    play(world, 1)
    load = world.coordinator.core.view.registry.member(at).load
    people = 1 if alone else 2
    assert load.outgoing > (people + 1) * TRUE
    assert (load.incoming > 2 * TRUE) == alone, "what the cache has is pulled once"


def test_a_broker_that_is_cut_off_from_the_data_cluster_is_named() -> None:
    world = system()
    settled(world)
    at = world.coordinator.core.view.assignment("ann").broker
    assert at is not None
    world.network.sever(at, "data")
    for link in world.network.links(at, "data"):
        link.sever()
    play(world, 40)
    [problem] = world.coordinator.core.problems
    assert problem.startswith(f"broker {at} measures ")
    assert "where 1.2 kB/s are planned" in problem
    world.network.mend_all()
    play(world, 30)
    assert world.coordinator.core.problems == []
