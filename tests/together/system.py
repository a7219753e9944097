"""The real cores of brokers, coordinator and subscribers on one virtual clock, with a model of the data cluster.

Messages arrive at once and in order while their link is up. Whatever breaks is told to both ends, as a real driver
would do, but nothing that was under way arrives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.broker.world import DataCluster
from tocsin.balance.registry import placement, planner
from tocsin.balance.thresholds import Thresholds
from tocsin.broker import actions as broker_actions
from tocsin.broker import events as broker_events
from tocsin.broker.core import Broker
from tocsin.client import actions as client_actions
from tocsin.client import events as client_events
from tocsin.client.core import Core
from tocsin.coordinator import actions, answers, events
from tocsin.coordinator.core import Coordinator
from tocsin.coordinator.rounds import Planners
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.coordinator.tokens import verify
from tocsin.errors import TocsinError
from tocsin.model import control

_GONE = 1006


@dataclass
class Node:
    """A broker's process while it lives."""

    name: str
    core: Broker
    link: int
    key: str = ""
    sessions: dict[int, tuple[Person, int]] = field(default_factory=dict)


@dataclass
class Person:
    """A subscriber's program: it takes every note at once, and remembers them."""

    name: str
    core: Core
    token: str = ""
    connections: dict[int, tuple[Node, int]] = field(default_factory=dict)
    since: dict[int, int] = field(default_factory=dict)
    had: dict[int, list[int]] = field(default_factory=dict)


class System:
    """Everything, driven by a test."""

    def __init__(self, brokers: list[str], seed: int = 0) -> None:
        self.random = Random(seed)
        self.now = 1_700_000_000.0
        self.data = DataCluster()
        self.store = MemoryStore()
        self.nodes: dict[str, Node] = {}
        self.people: list[Person] = []
        self._numbers = iter(range(1, 1_000_000_000))
        self._replies: dict[int, Callable[[answers.Answer | TocsinError], None]] = {}
        self._waiting: deque[Callable[[], None]] = deque()
        self.coordinator = self._coordinator()
        for name in brokers:
            self.start(name)

    def start(self, name: str) -> None:
        """Starts a broker's process."""
        if name in self.nodes:
            return
        node = Node(name, Broker(name, f"ws://{name}", lambda token: self._verified(name, token)), next(self._numbers))
        self.nodes[name] = node
        self._tell_broker(node, broker_events.Connected("data"))
        self._tell_broker(node, broker_events.Connected("coordinator"))
        self._settle()

    def kill(self, name: str) -> None:
        """Ends a broker's process as a crash does. The data cluster goes on finding things for it."""
        node = self.nodes.pop(name)
        for person, connection in list(node.sessions.values()):
            self._lose(person, connection)
        self._tell_coordinator(events.Lost(node.link))
        self._settle()

    def restart_coordinator(self) -> None:
        """Ends the coordinator's process and starts another one on what was stored."""
        self._replies.clear()
        self.coordinator = self._coordinator()
        for node in self.nodes.values():
            self._tell_broker(node, broker_events.Lost("coordinator"))
            node.link = next(self._numbers)
            self._tell_broker(node, broker_events.Connected("coordinator"))
        for person in self.people:
            self._tell_person(person, client_events.CoordinatorFailed("it is gone"))
        self._settle()

    def cut(self, person: Person) -> None:
        """Breaks a subscriber's connections."""
        for connection, (node, session) in list(person.connections.items()):
            self._tell_broker(node, broker_events.Closed(session))
            node.sessions.pop(session, None)
            self._lose(person, connection)
        self._settle()

    def lose_data(self, name: str) -> None:
        """Breaks a broker's link to the data cluster, which comes back at once."""
        self._tell_broker(self.nodes[name], broker_events.Lost("data"))
        self._tell_broker(self.nodes[name], broker_events.Connected("data"))
        self._settle()

    def drain(self, name: str, on: bool = True) -> None:
        """Asks for a broker to be emptied."""
        self._ask(lambda handle: events.Drain(handle, name, on), lambda _: None)

    def join(self, name: str) -> Person:
        """A subscriber registers and goes online."""
        person = Person(name, Core(Random(self.random.random())))
        self.people.append(person)

        def registered(answer: answers.Answer | TocsinError) -> None:
            assert isinstance(answer, answers.Registered)
            person.token = answer.token
            self._tell_person(person, client_events.Start(answer.token))

        self._ask(lambda handle: events.RegisterUser(handle, name), registered)
        return person

    def subscribe(self, person: Person, channel: str, **parameters: object) -> None:
        """A subscriber wants something."""
        self._tell_person(person, client_events.Subscribe(next(self._numbers), channel, parameters))
        self._settle()

    def execute(self, channel: str, chosen: Callable[[int], bool] = lambda be: True) -> None:
        """Runs a channel once."""
        for name, notice in self.data.execute(channel, chosen).items():
            if name in self.nodes:
                self._tell_broker(self.nodes[name], broker_events.Told(notice))
        self._settle()

    def advance(self, seconds: float) -> None:
        """Lets time pass, with every tick that a core asks for and a sign of life of each broker every second."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(self.now + 0.25, end)
            for node in list(self.nodes.values()):
                self._tell_coordinator(events.Heard(node.link))
                self._tell_broker(node, broker_events.Tick())
            self._tell_coordinator(events.Tick())
            for person in self.people:
                self._tell_person(person, client_events.Tick())
            self._settle()

    def _coordinator(self) -> Coordinator:
        planners = Planners(planner("migrate"), planner("shuffle"), Thresholds(beta=0, theta=0))
        return Coordinator(self.store.read(), self.now, placement("round-robin"), planners)

    def _verified(self, broker: str, token: str) -> str:
        return verify(self.nodes[broker].key, token, self.now).name

    def _settle(self) -> None:
        for _ in range(100_000):
            if not self._waiting:
                return
            self._waiting.popleft()()
        raise AssertionError("the cores talk without end")

    def _ask(
        self, request: Callable[[int], events.Request], then: Callable[[answers.Answer | TocsinError], None]
    ) -> None:
        handle = next(self._numbers)
        self._replies[handle] = then
        self._tell_coordinator(request(handle))
        self._settle()

    def _tell_coordinator(self, event: events.Event) -> None:
        coordinator = self.coordinator

        def handle() -> None:
            if coordinator is self.coordinator:
                for action in coordinator.handle(self.now, event):
                    self._coordinator_did(action)

        self._waiting.append(handle)

    def _coordinator_did(self, action: actions.Action) -> None:
        match action:
            case actions.Send(link, message):
                for node in self.nodes.values():
                    if node.link == link:
                        self._tell_broker(node, broker_events.Told(message))
            case actions.Store(batch, changes):
                self.store.write(changes)
                self._tell_coordinator(events.Stored(batch))
            case actions.Decide():
                self._tell_coordinator(action.run())
            case actions.Reply(handle, answer):
                if handle in self._replies:
                    self._replies.pop(handle)(answer)

    def _tell_broker(self, node: Node, event: broker_events.Event) -> None:
        def handle() -> None:
            if self.nodes.get(node.name) is node:
                for action in node.core.handle(self.now, event):
                    self._broker_did(node, action)

        self._waiting.append(handle)

    def _broker_did(self, node: Node, action: broker_actions.Action) -> None:
        match action:
            case broker_actions.Send(session, frame) if session in node.sessions:
                person, connection = node.sessions[session]
                self._tell_person(person, client_events.Received(connection, frame))
                self._tell_broker(node, broker_events.Drained(session, 0))
            case broker_actions.Close(session, code) if session in node.sessions:
                person, connection = node.sessions.pop(session)
                self._lose(person, connection, code)
            case broker_actions.ToData(message):
                answer = self.data.answer(node.name, message)
                assert isinstance(answer, control.Attached | control.Detached | control.Results | control.Pong)
                self._tell_broker(node, broker_events.Told(answer))
            case broker_actions.ToCoordinator(message):
                self._tell_coordinator(events.Received(node.link, message))
            case broker_actions.KeyLearned(key):
                node.key = key

    def _tell_person(self, person: Person, event: client_events.Event) -> None:
        self._waiting.append(lambda: self._person_handles(person, event))

    def _person_handles(self, person: Person, event: client_events.Event) -> None:
        for action in person.core.handle(self.now, event):
            self._person_did(person, action)

    def _person_did(self, person: Person, action: client_actions.Action) -> None:
        match action:
            case client_actions.AskBroker():
                self._look_up(person)
            case client_actions.Open(connection, url):
                self._open(person, connection, url.removeprefix("ws://"))
            case client_actions.Send(connection, text) if connection in person.connections:
                node, session = person.connections[connection]
                self._tell_broker(node, broker_events.Received(session, text))
            case client_actions.Close(connection) if connection in person.connections:
                node, session = person.connections.pop(connection)
                node.sessions.pop(session, None)
                self._tell_broker(node, broker_events.Closed(session))
            case client_actions.Confirmed(_, held):
                person.since.setdefault(held.subscription, held.cursor)
            case client_actions.Deliver(subscription, note):
                person.had.setdefault(subscription, []).append(note.e)
                self._tell_person(person, client_events.Taken(subscription, note.e))

    def _look_up(self, person: Person) -> None:
        def located(answer: answers.Answer | TocsinError) -> None:
            if isinstance(answer, answers.Located):
                self._tell_person(person, client_events.BrokerFound(answer.url))
            else:
                self._tell_person(person, client_events.CoordinatorFailed(str(answer)))

        handle = next(self._numbers)
        self._replies[handle] = located
        self._tell_coordinator(events.RequestBroker(handle, person.token))

    def _open(self, person: Person, connection: int, broker: str) -> None:
        node = self.nodes.get(broker)
        if node is None:
            self._tell_person(person, client_events.Lost(connection))
            return
        session = next(self._numbers)
        node.sessions[session], person.connections[connection] = (person, connection), (node, session)
        self._tell_broker(node, broker_events.Opened(session))
        self._tell_person(person, client_events.Opened(connection))

    def _lose(self, person: Person, connection: int, code: int = _GONE) -> None:
        person.connections.pop(connection, None)
        self._tell_person(person, client_events.Lost(connection, code))
