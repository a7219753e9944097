"""A whole system: brokers, coordinator, data cluster and subscribers, each of which can crash and start again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import Any

from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.placement.placement import Placement
from tocsin.balance.policies import placement, planner
from tocsin.broker.limits import BrokerLimits
from tocsin.client.core import events as client_events
from tocsin.client.rules import Rules
from tocsin.coordinator import answers, events
from tocsin.coordinator.balancing import Planners
from tocsin.coordinator.core import CoordinatorCore
from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.coordinator.tokens import Claims, SigningKey
from tocsin.data.control.pending import MOST_IDS
from tocsin.errors import NotFoundError, TocsinError
from tocsin.model.terms import Terms
from tocsin.simulate.brokerhost import BrokerHost
from tocsin.simulate.clienthost import ClientHost
from tocsin.simulate.clock import VirtualClock
from tocsin.simulate.cluster import DataClusterModel
from tocsin.simulate.coordinatorhost import Asking, BlankStore, CoordinatorHost
from tocsin.simulate.datahost import DataHost
from tocsin.simulate.diary import BlankDiary, Diary
from tocsin.simulate.network import Conditions, SimulatedNetwork
from tocsin.simulate.process import SimulatedWorld
from tocsin.simulate.trace import Trace

_KEY = SigningKey("simulated", "a" * 43)
GROUP = "simulated"  # everybody is in it
_AGAIN = 2.0  # seconds until somebody asks again who was not answered


def product() -> Planners:
    """What balances unless settings say otherwise."""
    return Planners(planner("migrate"), planner("shuffle"), Thresholds.product())


@dataclass
class Setup:
    """What a system is made of.

    ``verdict`` says whether everything is kept by which a coordinator can be started again, and everybody judged.
    Without it nobody may crash, and no channel be dropped.
    """

    conditions: Conditions = field(default_factory=Conditions)
    brokers: BrokerLimits = field(default_factory=BrokerLimits)
    coordinator: CoordinatorLimits = field(default_factory=CoordinatorLimits)
    rules: Rules = field(default_factory=Rules)
    placement: Callable[[], Placement] = lambda: placement("round-robin")
    planners: Callable[[], Planners] = product
    store_seconds: float = 0.01
    answer_seconds: float = 0.005
    buffered: bool = True
    most_waiting: int = MOST_IDS
    read_seconds: float = 0.0
    decide_seconds: float = 0.5
    verdict: bool = True


class System:
    """Everything. What is started twice, or ended when it is not there, stays as it is.

    ``on_broker`` and ``on_person`` are told of every process when it starts. ``at_once`` may make a subscription in
    place of the cores, and says whether it has.
    """

    def __init__(
        self,
        brokers: list[str],
        seed: int = 0,
        setup: Setup | None = None,
        show: Callable[[str], None] | None = None,
        cluster: DataClusterModel | None = None,
    ) -> None:
        self.setup, self.random = setup or Setup(), Random(seed)
        self.clock, self.trace = VirtualClock(), Trace(show)
        self.network = SimulatedNetwork(self.clock, self.random, self.setup.conditions)
        self.world = SimulatedWorld(self.network, self.trace)
        self.cluster = cluster or DataClusterModel(window=self.setup.brokers.rate_seconds)
        self.cluster.now = lambda: self.clock.now
        self.store = (MemoryStore if self.setup.verdict else BlankStore)(Keyring((_KEY,)))
        self.brokers: dict[str, BrokerHost] = {}
        self.people: dict[str, ClientHost] = {}
        self.diaries: dict[str, Diary] = {}
        self._blank = BlankDiary("everybody")
        # What everybody's application wants, whatever happens to its program.
        self.desired: dict[str, dict[int, client_events.Subscribe]] = {}
        # Who wants to leave for good or is to be removed, who has left, and what they had.
        self.leaving: dict[str, bool] = {}
        self.departed: dict[str, None] = {}
        self.former: list[Diary] = []
        self._registering: dict[str, None] = {}
        self._tokens: dict[str, str] = {}
        self.on_broker: Callable[[BrokerHost], None] | None = None
        self.on_person: Callable[[ClientHost], None] | None = None
        self.at_once: Callable[[ClientHost, client_events.Subscribe], bool] | None = None
        self._refs, self._token_ids = count(1), count(1)
        self._ended: list[tuple[Diary, int]] = []
        self._restored = False
        self._options: dict[str, dict[str, Any]] = {}
        self.data = self._data()
        self.coordinator = self._coordinator()
        for name in brokers:
            self.start_broker(name)

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self.clock.pass_time(seconds)

    def remark(self, text: str) -> None:
        """Notes what is done to the system."""
        self.trace.remark(self.clock.now, text)

    def start_broker(self, name: str, **options: Any) -> None:
        """Starts a broker's process, with the options of a BrokerHost; without any, with those it had before."""
        if name not in self.brokers or not self.brokers[name].alive:
            self.remark(f"broker {name} starts")
            self._options[name] = options or self._options.get(name, {})
            self.brokers[name] = BrokerHost(self.world, name, self.setup.brokers, **self._options[name])
            if self.on_broker:
                self.on_broker(self.brokers[name])

    def start_coordinator(self) -> None:
        """Starts the coordinator's process on what is stored."""
        if not self.coordinator.alive:
            self.remark("the coordinator starts")
            self.coordinator = self._coordinator()

    def start_data(self) -> None:
        """Starts the data cluster's process on what it has."""
        if not self.data.alive:
            self.remark("the data cluster starts")
            self.cluster.begin()
            self.data = self._data()

    def join(self, name: str, location: tuple[float, float] | None = None) -> ClientHost:
        """A subscriber's program starts and goes online, wanting what it ever wanted."""
        if name in self.people and self.people[name].alive:
            return self.people[name]
        self.remark(f"{name} starts")
        diary = self.diaries.setdefault(name, Diary(name) if self.setup.verdict else self._blank)
        person = self.people[name] = ClientHost(self.world, name, self._token(name), diary, self.setup.rules, location)
        person.refused = self._refused
        if self.on_person:
            self.on_person(person)
        person.start()
        for desired in self.desired.setdefault(name, {}).values():
            person.tell(desired)
        return person

    def crash_person(self, name: str) -> None:
        """A subscriber's program ends at once."""
        person = self.people.get(name)
        if person and person.alive:
            self.remark(f"{name} crashes")
            person.crash()

    def leave(self, name: str, removed: bool = False) -> None:
        """A subscriber leaves for good, or is ``removed`` by an operator; whoever wants that asks until it is done."""
        if name not in self.leaving:
            self.remark(f"{name} {'is to be removed' if removed else 'leaves for good'}")
            self.leaving[name] = removed
            self._ask_to_leave(name)

    def register(self, name: str) -> None:
        """Somebody else comes under the name of one who has left."""
        if self.departed.pop(name, "") is None:
            self._registering[name] = None
            self._ask_to_register(name)

    def subscribe(self, name: str, channel: str, live: bool = False, **parameters: Any) -> int:
        """A subscriber wants something, and calls it by the number returned."""
        return self.want(name, channel, parameters, live)

    def want(self, name: str, channel: str, parameters: dict[str, Any], live: bool = False) -> int:
        """The same; many may have the same parameters, which are not changed."""
        ref, person = next(self._refs), self.people[name]
        request = self.desired[name][ref] = client_events.Subscribe(ref, channel, parameters, live)
        if not (self.at_once and self.at_once(person, request)):
            person.diary.wanted(self.cluster.be(channel, parameters))
            person.tell(request)
        return ref

    def unsubscribe(self, name: str, ref: int) -> None:
        """A subscriber does not want something any more."""
        desired = self.desired[name].pop(ref)
        self.diaries[name].leaving(ref, self.cluster.be(desired.channel, desired.parameters))
        self.people[name].tell(client_events.Unsubscribe(ref))

    def execute(self, channel: str, chosen: Callable[[int], bool] = lambda be: True) -> None:  # noqa: ARG005
        """The data cluster runs a channel once."""
        self.data.execute(channel, chosen)

    def ask(
        self,
        request: events.Request,
        then: Callable[[answers.Answer | TocsinError], None] = lambda answer: None,  # noqa: ARG005
    ) -> None:
        """An operator asks the coordinator something."""
        if self.coordinator.alive:
            self.remark(repr(request))
            self.coordinator.ask(request, then)

    def drop(self, channel: str) -> None:
        """Somebody drops a channel: whoever has it is told, and whoever is about to does not want it any more."""
        if not self.data.alive or channel in self.cluster.absent:
            return
        self.remark(f"channel {channel} is dropped")
        for name, wanted in self.desired.items():
            for ref in [ref for ref, desired in wanted.items() if self.cluster.spelling_of(desired.channel) == channel]:
                self._lose(name, ref)
        self.data.drop(channel)

    def change(self, channel: str, terms: Terms) -> None:
        """Somebody replaces a channel by one with other terms."""
        self.remark(f"channel {channel} has the terms {terms}")
        self.data.change(channel, terms)

    def create(self, channel: str) -> None:
        """Somebody creates a channel that is not there."""
        if channel in self.cluster.absent:
            self.remark(f"channel {channel} is created")
            self.cluster.create(channel)

    def restore(self, copy: dict[str, Any] | None) -> None:
        """The data cluster ends, and its data are as in a copy, or nothing."""
        self.data.crash()
        self._restored = True
        # With the data it is lost that a channel was dropped: what the coordinator had not yet stored may go on.
        for diary, be in self._ended:
            diary.undecided.add(be)
        if copy is None:
            self.remark("all data are lost")
            self.cluster.lose()
        else:
            self.remark("an older copy of the data is restored")
            self.cluster.restore(copy)

    def _new_token_id(self) -> str:
        return f"token-{next(self._token_ids)}"

    def _token(self, name: str) -> str:
        """Made beside the coordinator, for those who were never registered with it."""
        ends = self.clock.now + self.setup.coordinator.token_life
        return self._tokens.setdefault(name, _KEY.sign(Claims(name, "subscriber", ends, (GROUP,), id=f"{name}-1")))

    def _ask_to_leave(self, name: str) -> None:
        if name not in self.leaving:
            return
        if self.leaving[name]:
            self.ask(events.RemoveUser(0, name), partial(self._left, name))
        else:
            Asking(self.world, name, events.Unregister(0, self._token(name)), partial(self._left, name))
        self.clock.after(_AGAIN, self._ask_to_leave, name)

    def _left(self, name: str, answer: answers.Answer | TocsinError) -> None:
        """Whoever is not known to the coordinator stays, unless that is because it was removed."""
        known = self.coordinator.core.view.assignment(name)
        if name not in self.leaving or (isinstance(answer, TocsinError) and not isinstance(answer, NotFoundError)):
            return
        del self.leaving[name]
        if isinstance(answer, NotFoundError) and not known.gone:
            return
        self.remark(f"{name} has left")
        self.people.pop(name).crash()
        self.former.append(self.diaries.pop(name))
        del self.desired[name]
        self.departed[name] = None

    def _ask_to_register(self, name: str) -> None:
        if name in self._registering:
            self.ask(events.RegisterUser(0, name, groups=(GROUP,)), partial(self._registered, name))
            self.clock.after(_AGAIN, self._ask_to_register, name)

    def _registered(self, name: str, answer: answers.Answer | TocsinError) -> None:
        if isinstance(answer, answers.Registered) and name in self._registering:
            del self._registering[name]
            self._tokens[name] = answer.token
            self.join(name)

    def _lose(self, name: str, ref: int) -> None:
        """A subscriber's channel is gone."""
        desired, diary = self.desired[name][ref], self.diaries[name]
        be = self.cluster.be(desired.channel, desired.parameters)
        diary.dropped(be)
        if not self.people[name].alive:
            # Its broker, if it has any, may not hear of this before there is another channel of that name.
            diary.undecided.add(be)
            del self.desired[name][ref]
        elif be not in {self.cluster.present(held) for held in diary.open}:
            self.unsubscribe(name, ref)

    def _refused(self, name: str, ref: int) -> None:
        desired = self.desired.get(name, {}).pop(ref, None)
        if desired is not None:
            be = self.cluster.be(desired.channel, desired.parameters)
            self._ended.append((self.diaries[name], be))
            if self._restored:
                # What the coordinator has stored may be of data from before: of that no channel says it was dropped.
                self.diaries[name].undecided.add(be)

    def _data(self) -> DataHost:
        setup = self.setup
        limits = (setup.answer_seconds, setup.buffered, setup.most_waiting, setup.read_seconds)
        return DataHost(self.world, self.cluster, *limits)

    def _coordinator(self) -> CoordinatorHost:
        core = CoordinatorCore(
            self.store.read(),
            self.clock.now,
            self.setup.placement(),
            self.setup.planners(),
            self.setup.coordinator,
            self._new_token_id,
        )
        return CoordinatorHost(self.world, core, self.store, self.setup.store_seconds, self.setup.decide_seconds)
