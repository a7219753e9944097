"""A small world around a coordinator: brokers, subscribers, links and a disk, and a schedule drawn at random.

Brokers are honest, but slow, they crash and lose their links; subscribers come, go, subscribe, acknowledge, or never
follow when they are told to move; the coordinator is killed at any moment. Everything that the coordinator says is
checked against what is on disk at that moment.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import count
from random import Random

from msgspec.structs import replace

from tests.coordinator.manual import START, held, planners
from tocsin.balance.policies import placement
from tocsin.coordinator.actions import Action, Close, Decide, Reply, Send, StoreBatch
from tocsin.coordinator.answers import Located, Registered
from tocsin.coordinator.core import CoordinatorCore
from tocsin.coordinator.events import (
    BatchStored,
    Event,
    Lost,
    Received,
    RegisterUser,
    RequestBroker,
    SignOfLife,
    Tick,
)
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.model.coordination import (
    Absent,
    Arrived,
    FromBroker,
    FromCoordinator,
    Handover,
    Hello,
    Keep,
    Kept,
    Load,
    Prepare,
    Prepared,
    Progress,
    Refused,
    Release,
    Released,
    StayId,
    Unprepared,
)
from tocsin.model.subscriber import Held

LIMITS = CoordinatorLimits(returning=4.0, preparing=3.0, arriving=3.0, interval=2.0, in_flight=4, per_second=10.0)


@dataclass
class Person:
    """A subscriber: where it is connected, and where it was told to go."""

    name: str
    token: str = ""
    at: tuple[str, int] | None = None
    told: str | None = None


@dataclass
class Station:
    """A broker: its stays with what each holds, and what it has asked to be kept."""

    name: str
    link: int | None = None
    stays: dict[tuple[str, int], dict[int, Held]] = field(default_factory=dict)
    pending: dict[int, Keep] = field(default_factory=dict)
    inbox: deque[FromCoordinator] = field(default_factory=deque)
    outbox: deque[FromBroker] = field(default_factory=deque)


class World:
    """``random`` decides everything, so that a seed is a schedule."""

    def __init__(self, random: Random, brokers: int = 3, people: int = 5) -> None:
        self.random, self.now = random, START
        self.store, self.batches = MemoryStore(), deque[StoreBatch]()
        self.questions: list[Decide] = []
        self.stations = {name: Station(name) for name in "abcdefgh"[:brokers]}
        self.people = {f"p{n}": Person(f"p{n}") for n in range(people)}
        self.numbers = count(1)
        self.asked: dict[int, str] = {}
        # Per subscriber and subscription, what was last asked for: the reference, and whether it is to be gone.
        self.requested: dict[tuple[str, int], tuple[int, bool]] = {}
        self.kept: set[int] = set()
        self.executions = 0
        self.said: Counter[str] = Counter()
        self._begin()

    def _begin(self) -> None:
        self.core = CoordinatorCore(self.store.read(), self.now, placement("two-choices"), planners(), LIMITS)

    def tell(self, event: Event) -> None:
        """The coordinator is told something, and what it wants done is on its way."""
        for action in self.core.handle(self.now, event):
            self._do(action)

    def _do(self, action: Action) -> None:
        match action:
            case StoreBatch():
                self.batches.append(action)
            case Decide():
                self.questions.append(action)
            case Close(link):
                for station in self.stations.values():
                    if station.link == link:
                        self._cut(station)
            case Send(link, message):
                for station in self.stations.values():
                    if station.link == link:
                        self._check(message)
                        station.inbox.append(message)
            case Reply(handle, answer):
                self._answered(self.asked.pop(handle, ""), answer)

    def _check(self, message: FromCoordinator) -> None:
        """Nothing is said that the disk does not know."""
        state = self.store.read()
        self.said[type(message).__name__] += 1
        if isinstance(message, Prepare):
            assignment = next(each for each in state.assignments if each.subscriber == message.subscriber)
            assert message.stay <= assignment.coming, "a number is given that could be given again"
            stored = state.held.get(message.subscriber, {})
            for each in message.subscriptions:
                assert each.cursor >= stored.get(each.subscription, each).cursor, "a cursor goes back"
        if isinstance(message, Kept):
            for (name, subscription), (ref, gone) in self.requested.items():
                if ref == message.ref:
                    assert (subscription in state.held.get(name, {})) is not gone, "kept, and it is not"

    def _answered(self, name: str, answer: object) -> None:
        person = self.people.get(name)
        if person is None:
            return
        if isinstance(answer, Registered):
            person.token = answer.token
        elif isinstance(answer, Located) and person.at is None:
            self._login(person, self.stations[answer.broker])

    def _login(self, person: Person, station: Station) -> None:
        mine = [stay for name, stay in station.stays if name == person.name]
        if mine:
            person.at, person.told = (station.name, max(mine)), None
            station.outbox.append(Arrived(person.name, max(mine)))

    def connect(self, station: Station) -> None:
        """A broker dials in, and says again what was not answered."""
        if station.link is not None:
            return
        station.outbox.clear()
        station.link = next(self.numbers)
        served = {
            (person.name, person.at[1]) for person in self.people.values() if person.at and self._on(person) is station
        }
        serving = [StayId(*stay) for stay in station.stays if stay in served]
        prepared = [StayId(*stay) for stay in station.stays if stay not in served]
        station.outbox.append(Hello(station.name, f"ws://{station.name}", serving, prepared))
        station.outbox.append(Load(0.0, 0.0, {n: 10.0 * n for n in range(1, 5)}))
        station.outbox.extend(station.pending.values())

    def _on(self, person: Person) -> Station:
        assert person.at is not None
        return self.stations[person.at[0]]

    def _cut(self, station: Station) -> None:
        station.link = None
        station.inbox.clear()
        station.outbox.clear()

    def lose(self, station: Station) -> None:
        """A link is lost, with what is on it."""
        link = station.link
        self._cut(station)
        if link is not None:
            self.tell(Lost(link))

    def crash(self, station: Station) -> None:
        """A broker forgets everything."""
        self.lose(station)
        station.stays.clear()
        station.pending.clear()
        for person in self.people.values():
            if person.at and person.at[0] == station.name:
                person.at = person.told = None

    def restart(self) -> None:
        """The coordinator is killed: what is not on disk is gone."""
        self.batches.clear()
        self.questions.clear()
        self.asked.clear()
        for station in self.stations.values():
            self._cut(station)
        self._begin()

    def hear(self, station: Station) -> None:
        """A broker's next message reaches the coordinator."""
        if station.link is not None and station.outbox:
            self.tell(Received(station.link, station.outbox.popleft()))

    def act(self, station: Station, willing: bool = True) -> None:
        """A broker acts on its next message."""
        if not station.inbox:
            return
        match station.inbox.popleft():
            case Prepare(name, stay, subscriptions) if willing or (name, stay) in station.stays:
                station.stays[name, stay] = {each.subscription: each for each in subscriptions}
                station.outbox.append(Prepared(name, stay))
            case Prepare(name, stay):
                station.outbox.append(Unprepared(name, stay, "not now"))
            case Handover(name, stay, url):
                if self.people[name].at == (station.name, stay):
                    self.people[name].told = url.removeprefix("ws://")
                else:
                    station.outbox.append(Absent(name, stay))
            case Release(name, stay):
                self._release(station, name, stay)
            case Kept(ref):
                self._keep(station, ref)
            case Refused(details=details):
                station.pending.pop(details["ref"], None)
            case _:
                pass

    def _release(self, station: Station, name: str, stay: int) -> None:
        held = station.stays.pop((name, stay), {})
        if self.people[name].at == (station.name, stay):
            self.people[name].at = self.people[name].told = None
        station.outbox.append(Released(name, stay, {each.subscription: each.cursor for each in held.values()}))

    def _keep(self, station: Station, ref: int) -> None:
        keep = station.pending.pop(ref, None)
        self.kept.add(ref)
        if keep is None or (keep.subscriber, keep.stay) not in station.stays:
            return
        mine = station.stays[keep.subscriber, keep.stay]
        if keep.gone:
            mine.pop(keep.held.subscription, None)
        else:
            mine.setdefault(keep.held.subscription, keep.held)

    def ask(self, person: Person) -> None:
        """A subscriber without a connection asks where to go."""
        if person.at is None and person.name not in self.asked.values():
            handle = next(self.numbers)
            self.asked[handle] = person.name
            asks = RequestBroker(handle, person.token) if person.token else RegisterUser(handle, person.name)
            self.tell(asks)

    def follow(self, person: Person) -> None:
        """A subscriber that was told to move does so, if the other broker takes it."""
        if person.told is not None:
            self._login(person, self.stations[person.told])

    def leave(self, person: Person) -> None:
        """A subscriber's connection ends."""
        person.at = person.told = None

    def request(self, person: Person) -> None:
        """A subscriber subscribes, or gives a subscription up."""
        if person.at is None:
            return
        ref, subscription, gone = next(self.numbers), self.random.randint(1, 4), self.random.random() < 0.3
        keep = Keep(ref, person.name, person.at[1], held(subscription, self.executions), gone)
        self.requested[person.name, subscription] = ref, gone
        self._on(person).pending[ref] = keep
        if self._on(person).link is not None:
            self._on(person).outbox.append(keep)

    def acknowledge(self, person: Person) -> None:
        """A subscriber has had everything."""
        if person.at is None:
            return
        self.executions += 1
        station = self._on(person)
        mine = station.stays[person.name, person.at[1]]
        for subscription, each in mine.items():
            mine[subscription] = replace(each, cursor=self.executions)
        station.outbox.append(Progress({person.name: dict.fromkeys(mine, self.executions)}))

    def commit(self) -> None:
        """The disk has the next batch."""
        if self.batches:
            batch = self.batches.popleft()
            self.store.write(batch.changes)
            self.tell(BatchStored(batch.batch))

    def decide(self) -> None:
        """The controller has made up its mind."""
        if self.questions:
            self.tell(self.questions.pop(0).run())

    def pass_time(self, seconds: float) -> None:
        """Time passes; brokers that are connected are heard of."""
        end = self.now + seconds
        while (wake := self.core.wake()) <= end:
            self.now = max(self.now, wake)
            for station in self.stations.values():
                if station.link is not None:
                    self.tell(SignOfLife(station.link))
            self.tell(Tick())
        self.now = end
