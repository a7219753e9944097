"""Brokers that can send only so much: what waits is late, in order, and late by the same on both levels."""

from __future__ import annotations

from random import Random
from typing import Final

import numpy as np
import pytest

from tocsin.broker.limits import BrokerLimits
from tocsin.client.core.actions import Deliver
from tocsin.coordinator.events import Drain
from tocsin.simulate.clienthost import ClientHost
from tocsin.simulate.clock import START, VirtualClock
from tocsin.simulate.network import Conditions, SimulatedConnection, SimulatedNetwork
from tocsin.simulate.policy import Policy
from tocsin.simulate.queueing import OutgoingQueue, Outlet, quantile
from tocsin.simulate.record import SimulationRecord
from tocsin.simulate.scenario import (
    BackendSubscriptions,
    InitialLocations,
    Scenario,
    ScenarioBroker,
    ScenarioChannel,
    ScenarioRates,
    SubscriptionChanges,
    Visits,
)
from tocsin.simulate.simulation import Level, Simulation
from tocsin.simulate.system import Setup, System

PEOPLE: Final = 20
PERIOD: Final = 10.0
SIZES: Final = [4000.0, 6000.0, 8000.0]
UNDER, OVER = 2.0, 0.8
TOLERANCE: Final = 0.1


def scenario(share: float) -> Scenario:
    """One broker that can send this many times what it has to, until after 20 executions nothing more is found."""
    people, lines = list(range(PEOPLE)), range(len(SIZES))
    capacity = share * PEOPLE * sum(SIZES) / PERIOD
    return Scenario(
        "queue",
        300.0,
        [ScenarioBroker("only", capacity=capacity)],
        [ScenarioChannel("news", PERIOD)],
        BackendSubscriptions([0] * len(SIZES), SIZES),
        InitialLocations([0.0] * PEOPLE, [0.0] * PEOPLE),
        logins=Visits([0.0] * PEOPLE, people),
        subscribes=SubscriptionChanges(
            [2.0] * PEOPLE * len(SIZES), people * len(SIZES), [line for line in lines for _ in people]
        ),
        rates=ScenarioRates([20.5 * PERIOD] * len(SIZES), list(lines), [0.0] * len(SIZES)),
    )


def played(share: float, level: Level) -> tuple[SimulationRecord, list[float]]:
    """A run, and how long after its execution each notification was in its subscriber's hands."""
    simulation = Simulation(scenario(share), 1, Policy(balancing=False), level)
    late: list[float] = []
    clock = simulation.system.clock

    def watch(person: ClientHost) -> None:
        def delivered(given: Deliver) -> None:
            late.append(clock.now - (START + 1.0 + given.note.e * PERIOD))

        person.delivered = delivered

    simulation.system.on_person = watch
    return simulation.run(), late


@pytest.mark.parametrize("share", [UNDER, OVER])
def test_counting_finds_the_delays_of_sending(share: float) -> None:
    counted, sent = played(share, "counted")[0], played(share, "frames")[0]
    assert counted.deliveries == sent.deliveries == 20 * PEOPLE * len(SIZES)
    for part in (0.5, 0.99):
        found, true = (quantile(record.latencies[0], part) for record in (counted, sent))
        assert found == pytest.approx(true, rel=TOLERANCE)
    assert np.allclose(counted.series("backlog"), sent.series("backlog"), rtol=TOLERANCE, atol=max(SIZES))


@pytest.mark.parametrize("share", [UNDER, OVER])
def test_a_subscriber_gets_it_as_late_as_is_recorded(share: float) -> None:
    record, late = played(share, "frames")
    assert len(late) == record.deliveries
    for part in (0.5, 0.99):
        assert quantile(record.latencies[0], part) == pytest.approx(np.quantile(late, part), rel=TOLERANCE)
    assert (max(late) < PERIOD) is (share > 1)


CALM: Final = Conditions(latency=0.001, spread=0.0)


def loaded(limits: BrokerLimits | None = None) -> System:
    """A broker that takes 60 s for what one execution finds for everybody, one that takes no time, and ten people."""
    system = System(
        [], 1, Setup(CALM, limits or BrokerLimits(), store_seconds=0.0, answer_seconds=0.0, decide_seconds=0.0)
    )
    system.cluster.size = lambda be, execution: 600_000
    system.start_broker("narrow", queue=OutgoingQueue(100_000.0))
    system.advance(1.0)
    for number in range(10):
        system.join(f"s{number}")
    system.advance(1.0)
    for number in range(10):
        system.subscribe(f"s{number}", "news")
    system.advance(1.0)
    system.start_broker("wide")
    system.advance(1.0)
    system.execute("news")
    return system


def received(system: System) -> list[int]:
    return [len(span.had) for diary in system.diaries.values() for span in diary.spans]


def test_what_waits_leaves_at_the_brokers_speed() -> None:
    system = loaded()
    counts = []
    for _ in range(6):
        system.advance(10.05)
        counts.append(sum(received(system)))
    assert counts == [1, 3, 5, 6, 8, 10]


class Listener:
    """The other end of a connection, which writes down what comes when."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.heard: list[tuple[float, bytes | int]] = []

    def received(self, link: SimulatedConnection, message: bytes) -> None:
        self.heard.append((round(self._clock.now - START, 3), message))

    def lost(self, link: SimulatedConnection, code: int) -> None:
        self.heard.append((round(self._clock.now - START, 3), code))

    def flushed(self, link: SimulatedConnection) -> None:
        pass


def test_frames_of_all_connections_leave_in_order_and_a_connection_ends_after_its_own() -> None:
    clock = VirtualClock()
    network, outlet = SimulatedNetwork(clock, Random(1), CALM), Outlet(clock, OutgoingQueue(10.0))
    accepted: list[SimulatedConnection] = []

    def accept(link: SimulatedConnection, purpose: str) -> Listener:
        accepted.append(link)
        return Listener(clock)

    network.listen("broker", accept)
    one, other = Listener(clock), Listener(clock)
    network.dial("one", "broker", "", one)
    network.dial("other", "broker", "", other)
    clock.run(START + 1.0)
    for frame in (b"first", b"second"):
        for link in accepted:
            outlet.send(link, frame)
    outlet.close(accepted[0], 1000)
    assert [outlet.waiting(link) for link in accepted] == [11, 11]
    clock.run(START + 1.7)
    assert [outlet.waiting(link) for link in accepted] == [6, 11]
    clock.run(START + 10.0)
    assert one.heard == [(1.501, b"first"), (2.601, b"second"), (3.201, 1000)]
    assert other.heard == [(2.001, b"first"), (3.201, b"second")]
    assert [outlet.waiting(link) for link in accepted] == [0, 0]


def test_an_answer_waits_behind_what_was_sent_before() -> None:
    system = loaded()
    system.advance(0.1)
    system.subscribe("s0", "weather")
    system.advance(50.0)
    assert len(system.diaries["s0"].open) == 1
    system.advance(11.0)
    assert len(system.diaries["s0"].open) == 2


def test_a_move_waits_behind_what_was_sent_before() -> None:
    system = loaded()
    system.advance(0.1)
    system.ask(Drain(0, "narrow", True))

    def moved() -> int:
        assignments = [system.coordinator.core.view.assignment(f"s{number}") for number in range(10)]
        return sum(each.broker == "wide" for each in assignments)

    system.advance(8.0)
    assert moved() == 0
    system.advance(120.0)
    assert moved() == 10
    assert not [wrong for diary in system.diaries.values() for wrong in diary.wrong(system.cluster)]


def test_whoever_has_too_much_waiting_is_slow_and_gets_everything_in_the_end() -> None:
    system = loaded(BrokerLimits(waiting_bytes=700_000))
    for _ in range(3):
        system.advance(5.0)
        system.execute("news")
    stays = system.brokers["narrow"].core.holdings.stays
    slow = [stay.session.slow for stay in stays.values() if stay.session]
    assert any(slow)
    system.advance(600.0)
    assert received(system) == [4] * 10
    assert not any(stay.session.slow for stay in stays.values() if stay.session)
    assert not [wrong for diary in system.diaries.values() for wrong in diary.wrong(system.cluster)]
