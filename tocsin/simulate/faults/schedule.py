"""One random schedule: trouble for a while, then healing, then the verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tocsin.broker.backoff import LONGEST
from tocsin.client.core.actions import ConnectionState
from tocsin.coordinator.events import Balance, Drain
from tocsin.model import control
from tocsin.simulate.brokerhost import BrokerHost
from tocsin.simulate.faults.injector import CHANNELS, FaultInjector
from tocsin.simulate.faults.invariants import violations
from tocsin.simulate.faults.weather import CALM, setup
from tocsin.simulate.system import System
from tocsin.simulate.weighing import note_size, notes

BROKERS = ("a", "b", "x")
PEOPLE = 5
HEALING, MOVING, ARRIVING = 25.0, 8.0, 2.0


@dataclass
class ScheduleOutcome:
    """What came of a schedule. ``wrong`` is empty when everything held."""

    seed: int
    fingerprint: str
    events: int
    notes: int
    moves: int
    faults: int
    wrong: list[str] = field(default_factory=list)


def make_trouble(random: Random, happen: Callable[[], None], advance: Callable[[float], None]) -> int:
    """Has trouble after trouble ``happen``, at once or after some time; how many there were."""
    faults = random.choice([10, 20, 40])
    for _ in range(faults):
        happen()
        advance(random.choice([0.0, 0.01, 0.1, 0.5, 2.0]))
    return faults


class Schedule:
    """A system, and what happens to it: all of it follows from the seed."""

    def __init__(self, seed: int, show: Callable[[str], None] | None = None) -> None:
        self._seed, self._random = seed, Random(seed)
        self._scales: dict[str, Scales] = {}
        self.system = System([], self._random.getrandbits(32), setup(self._random), show)
        self.system.cluster.size = lambda be, execution: 30 + (be * 37 + execution * 11) % 150
        self.system.cluster.kept = self._random.choice([None, None, 12, 30])
        self.system.cluster.part = self._random.choice([None, 1, 3])
        self._injector = FaultInjector(self.system, self._random)
        self._finding = self._random.choice([0.3, 0.7, 1.0])
        self._pause = 1.5
        self._away: set[str] = set()

    def run(self) -> ScheduleOutcome:
        """From the beginning to the verdict."""
        self._begin()
        make_trouble(self._random, self._injector.happen, self.system.advance)
        self._heal()
        self._move()
        system, injector = self.system, self._injector
        wrong = violations(system, self._away)
        wrong += [text for scales in self._scales.values() for text in scales.wrong()]
        notes = sum(len(span.had) for diary in system.diaries.values() for span in diary.spans)
        trace = system.trace
        return ScheduleOutcome(
            self._seed, trace.fingerprint, trace.events, notes, injector.moves, injector.count, wrong
        )

    def _begin(self) -> None:
        system, random = self.system, self._random
        system.on_person = lambda person: setattr(person, "moving", self._injector.on_the_way)
        system.on_broker = self._put_on_scales
        for channel in CHANNELS:
            system.cluster.absent.add(channel)
            system.create(channel)
        for name in BROKERS:
            system.start_broker(name)
        for channel in CHANNELS:
            self._execute(channel)
        for number in range(PEOPLE):
            name = f"p{number}"
            system.join(name)
            system.subscribe(name, "c", v=number % 3)
            system.subscribe(name, "d", random.random() < 0.1, v=number)
        system.advance(random.choice([0.5, 4.0]))

    def _put_on_scales(self, broker: BrokerHost) -> None:
        self._scales[broker.host] = Scales(broker)

    def _execute(self, channel: str) -> None:
        """Runs a channel again and again."""
        if self._finding:
            self.system.execute(channel, lambda be: self._random.random() < self._finding)  # noqa: ARG005
        self.system.clock.after(self._random.uniform(0.2, self._pause), self._execute, channel)

    def _heal(self) -> None:
        """Everything is repaired, the operator has things rest, and there is time for all that was put off."""
        system, self._injector.over = self.system, True
        # Brokers learn what they need not have when something is found for it.
        self._pause, self._finding = 5.0, 1.0
        system.remark("everything heals")
        system.network.conditions = CALM
        system.data.answer_seconds = system.setup.answer_seconds = CALM.latency
        system.data.refusing = system.data.read_seconds = system.setup.read_seconds = 0.0
        system.data.slowness.clear()
        system.network.mend_all()
        system.start_data()
        for channel in CHANNELS:
            system.create(channel)
        system.start_coordinator()
        for name in BROKERS:
            system.start_broker(name)
        for process in (system.coordinator, *system.brokers.values(), *system.people.values()):
            process.fuse = None
        for name in list(system.people):
            if self._random.random() < 0.15:
                self._away.add(name)
                system.crash_person(name)
            else:
                self._bring_back(name)
        system.ask(Balance(0, False))
        # A coordinator that has just started may not know all brokers yet.
        system.advance(LONGEST + 1.0)
        for name in BROKERS:
            system.ask(Drain(0, name, False))
        system.advance(HEALING + system.setup.brokers.stranger_seconds)

    def _bring_back(self, name: str) -> None:
        person = self.system.join(name)
        person.slowness = 0.0
        if person.state is ConnectionState.STOPPED:
            person.start()

    def _move(self) -> None:
        """A broker is emptied shortly before the verdict: loads must be right just after moves, too."""
        self.system.ask(Drain(0, self._random.choice(BROKERS)))
        self.system.advance(MOVING)
        self._finding = 0.0
        self.system.advance(ARRIVING)


class Scales:
    """Weighs one broker from its start on: all that it pulls and sends, also for those who are behind."""

    def __init__(self, broker: BrokerHost) -> None:
        self._broker = broker
        self._received = self._sent = 0
        broker.sent, broker.pulled = self._send, self._pull

    def wrong(self) -> list[str]:
        """Where the account differs from what was weighed."""
        accounted = self._broker.core.traffic.received, self._broker.core.traffic.sent
        weighed = self._received, self._sent
        if accounted == weighed:
            return []
        return [f"{self._broker.host} accounts {accounted} bytes in and out, but these were {weighed}"]

    def _send(self, now: float, frame: bytes) -> None:  # noqa: ARG002
        self._sent += sum(map(note_size, notes(frame)))

    def _pull(self, now: float, results: control.Results) -> None:  # noqa: ARG002
        self._received += sum(map(note_size, results.results))
