"""A scenario, played on a system: :class:`Simulation` is the front door for experiments."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate, count, takewhile
from typing import Any, Literal

import numpy as np

from tocsin.broker.limits import BrokerLimits
from tocsin.client.core.events import Stop
from tocsin.coordinator.events import Balance, Decided
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.simulate.clock import START
from tocsin.simulate.cluster import DataClusterModel
from tocsin.simulate.deliveries import CountedDeliveries, DeliveryModel, FrameDeliveries
from tocsin.simulate.network import Conditions
from tocsin.simulate.policy import Policy
from tocsin.simulate.record import RecordedDecision, Sample, SimulationRecord
from tocsin.simulate.scenario import Scenario
from tocsin.simulate.system import Setup, System

Level = Literal["counted", "frames"]
INTERVAL = 5.0


class Simulation:
    """One run: the same arguments give the same record.

    Args:
        level: "frames" hands every notification to its subscriber, as fast as its broker can send; "counted" only
            accounts it, says how late it would be, and makes most subscriptions in one go, which is some hundred times
            as fast. All else is the same.
        progress: is told the seconds that have passed.
        verdict: keeps for the system also what no record has: what is stored, and what everybody was given.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int = 0,
        policy: Policy | None = None,
        level: Level = "counted",
        conditions: Conditions | None = None,
        brokers: BrokerLimits | None = None,
        coordinator: CoordinatorLimits | None = None,
        progress: Callable[[float], None] | None = None,
        verdict: bool = False,
    ) -> None:
        self._scenario, self._policy, self._progress = scenario, policy or Policy(), progress
        limits = brokers or BrokerLimits(report_seconds=INTERVAL)
        self._cluster = DataClusterModel(window=limits.rate_seconds)
        setup = Setup(
            conditions=conditions or Conditions(latency=0.001, spread=0.0),
            brokers=limits,
            coordinator=coordinator or CoordinatorLimits(),
            placement=self._policy.make_placement,
            planners=self._policy.planners,
            store_seconds=0.0,
            answer_seconds=0.0,
            decide_seconds=0.0,
            verdict=verdict,
        )
        self.system = System([], seed, setup, cluster=self._cluster)
        made = CountedDeliveries if level == "counted" else FrameDeliveries
        self._stage: DeliveryModel = made(self.system, scenario)
        names = [broker.name for broker in scenario.brokers]
        self._record = SimulationRecord(scenario.name, self._policy.name, seed, names)
        self._locations = list(zip(scenario.subscribers.x, scenario.subscribers.y, strict=True))
        self._names = [f"s{number}" for number in range(len(self._locations))]
        channels = [scenario.channels[channel].name for channel in scenario.lines.channel]
        # Of each BE subscription its channel and its parameters, which all who subscribe share: that saves much memory.
        self._backends = [(channel, {"line": number}) for number, channel in enumerate(channels)]

    def run(self) -> SimulationRecord:
        """Plays the scenario from its beginning to its end."""
        with suspend_collection():
            self._play()
        return self._finish()

    def _play(self) -> None:
        system = self.system
        system.coordinator.decided = self._decided
        self._stage.begin()
        if not self._policy.balancing:
            system.ask(Balance(0, False))
        # Brokers are there before anybody comes.
        system.advance(1.0)
        start = system.clock.now
        for at, act, arguments in self._happenings():
            system.clock.run(start + at)
            act(*arguments)
        system.clock.run(start + self._scenario.seconds)

    def _happenings(self) -> Iterator[Happening]:
        """What happens, in the order of time; of what happens at the same time, earlier tables come first."""
        s = self._scenario
        executions = sorted(
            (at, count, number)
            for number, channel in enumerate(s.channels)
            for count, at in enumerate(_times(channel.period, s.seconds, channel.phase))
        )
        return _in_order(
            Happenings(self._login, s.logins.at, s.logins.subscriber),
            Happenings(self._move, s.moves.at, s.moves.subscriber, s.moves.x, s.moves.y),
            Happenings(self._subscribe, s.subscribes.at, s.subscribes.subscriber, s.subscribes.line),
            Happenings(self._unsubscribe, s.unsubscribes.at, s.unsubscribes.subscriber, s.unsubscribes.line),
            Happenings(self._stage.rate, s.rates.at, s.rates.line, s.rates.bytes),
            Happenings(self._logout, s.logouts.at, s.logouts.subscriber),
            Happenings(self._stage.execute, [at for at, _, _ in executions], [number for _, _, number in executions]),
            # Between executions, whose periods are whole seconds.
            Happenings(self._sample, list(_times(INTERVAL, s.seconds, -0.5))),
        )

    def _login(self, subscriber: int) -> None:
        name = self._names[subscriber]
        if name in self.system.people:
            self.system.people[name].start()
        else:
            self.system.join(name, self._locations[subscriber])

    def _logout(self, subscriber: int) -> None:
        self.system.people[self._names[subscriber]].tell(Stop())

    def _move(self, subscriber: int, x: float, y: float) -> None:
        self._locations[subscriber] = (x, y)
        if person := self.system.people.get(self._names[subscriber]):
            person.location = (x, y)

    def _subscribe(self, subscriber: int, backend: int) -> None:
        self.system.want(self._names[subscriber], *self._backends[backend])

    def _unsubscribe(self, subscriber: int, backend: int) -> None:
        name = self._names[subscriber]
        held = self.system.desired[name]
        ref = next(ref for ref, desired in held.items() if desired.parameters["line"] == backend)
        self.system.unsubscribe(name, ref)

    def _decided(self, decided: Decided) -> None:
        decision, at = decided.decision, self.system.clock.now - START
        moves = len(decision.moves) if decision.moves is not None else 0
        self._record.decisions.append(RecordedDecision(at, str(decision.stage), moves, decision.reason))

    def _sample(self) -> None:
        system, record = self.system, self._record
        now, core = system.clock.now, system.coordinator.core
        hosts = [system.brokers[name] for name in record.brokers]
        loads = [host.core.load(now) for host in hosts]
        brought, delivered = self._stage.since_last()
        record.samples.append(
            Sample(
                at=now - START,
                subscribers=[core.view.population(name) for name in record.brokers],
                online=[len(host.sessions) for host in hosts],
                incoming=[load[0] for load in loads],
                outgoing=[load[1] for load in loads],
                brought=[size / INTERVAL for size in brought],
                delivered=[size / INTERVAL for size in delivered],
                backlog=[queue.backlog(now) for queue in self._stage.queues],
                moves=core.view.moves_made,
            )
        )
        if self._progress:
            self._progress(now - START)

    def _finish(self) -> SimulationRecord:
        record, trace = self._record, self.system.trace
        record.latencies = [queue.counts for queue in self._stage.queues]
        record.deliveries, record.events = self._stage.deliveries, trace.events
        record.fingerprint = trace.fingerprint
        return record


Happening = tuple[float, Callable[..., None], list[Any]]
"""When, and what is called then with which arguments."""


class Happenings:
    """Something that happens at these times; of each, the columns have the arguments."""

    def __init__(self, act: Callable[..., None], at: list[float], *columns: list[Any]) -> None:
        self.act, self.at, self.columns = act, at, columns


def _in_order(*tables: Happenings) -> Iterator[Happening]:
    """All rows in the order of time."""
    firsts = [0, *accumulate(len(table.at) for table in tables)]
    order = np.argsort(np.concatenate([table.at for table in tables]), kind="stable")
    found = np.searchsorted(firsts, order, side="right") - 1
    for place, number in zip(order.tolist(), found.tolist(), strict=True):
        table, row = tables[number], place - firsts[number]
        yield table.at[row], table.act, [column[row] for column in table.columns]


def _times(period: float, until: float, phase: float = 0.0) -> Iterator[float]:
    """Again and again."""
    return takewhile(lambda at: at <= until, (phase + number * period for number in count(1)))


@contextmanager
def suspend_collection() -> Iterator[None]:
    """Nothing is collected meanwhile: what a simulation makes, it mostly needs till its end."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # What is left counts as old, or all of it would be looked at right now for being new.
        gc.freeze()
        gc.unfreeze()
        if before:
            gc.enable()
