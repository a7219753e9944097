"""Brokers, coordinator and subscribers on unreliable links, with a verdict on every notification."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.broker.world import NOTES, DataClusterModel, verify
from tocsin.broker import actions, events
from tocsin.broker.core import BrokerCore
from tocsin.broker.limits import BrokerLimits
from tocsin.model import coordination, subscriber
from tocsin.model.subscriber import Held

LIMITS = BrokerLimits(
    waiting_bytes=300,
    cache_bytes=2000,
    linger_seconds=1.0,
    request_seconds=5.0,
    stranger_seconds=50.0,
    pull_executions=4,
    pull_backends=2,
    pull_bytes=100,
    message_burst=10_000.0,
)


@dataclass
class Node:
    """A broker with its links: queues towards it and from it, per peer."""

    name: str
    core: BrokerCore
    up: dict[str, bool] = field(default_factory=lambda: {"data": False, "coordinator": False})
    inward: dict[str, deque[Any]] = field(default_factory=dict)
    outward: dict[str, deque[Any]] = field(default_factory=dict)


@dataclass
class Connection:
    """A subscriber's connection to a node."""

    id: int
    node: Node
    inward: deque[bytes] = field(default_factory=deque)
    outward: deque[bytes] = field(default_factory=deque)
    ending: bool = False
    welcomed: bool = False


@dataclass
class Person:
    """A subscriber, as its SDK would behave, with what it has had so far."""

    name: str
    main: Connection | None = None
    next: Connection | None = None
    had: dict[int, int] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)
    request: int = 0
    duplicates: int = 0
    received: int = 0


@dataclass
class Move:
    """A move under way."""

    to: str
    stay: int


@dataclass
class Place:
    """What the coordinator has stored of a subscriber."""

    broker: str
    stay: int
    held: dict[int, Held] = field(default_factory=dict)
    move: Move | None = None


class Network:
    """Two brokers and all around them, driven by a seeded sequence of choices."""

    def __init__(self, seed: int, people: int = 3) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.cluster = DataClusterModel()
        self.nodes = {name: self._node(name) for name in ("a", "b")}
        self.people = [Person(f"p{n}") for n in range(people)]
        self.places = {person.name: Place(self.random.choice("ab"), 1) for person in self.people}
        self.connections: dict[int, tuple[Connection, Person]] = {}
        self.last = 0
        self.moved = 0

    def _node(self, name: str) -> Node:
        node = Node(name, BrokerCore(name, name, verify, limits=LIMITS))
        for peer in ("answers", "notices", "coordinator"):
            node.inward[peer] = deque()
        for peer in ("data", "coordinator"):
            node.outward[peer] = deque()
        return node

    def give(self, node: Node, event: events.Event) -> None:
        for action in node.core.handle(self.now, event):
            match action:
                case actions.Send(session, frame):
                    self.connections[session][0].outward.append(frame)
                case actions.SendMany(sessions, frame):
                    for session in sessions:
                        self.connections[session][0].outward.append(frame)
                case actions.Close(session):
                    self.connections[session][0].ending = True
                case actions.ToData(message):
                    assert node.up["data"]
                    node.outward["data"].append(message)
                case actions.ToCoordinator(message):
                    assert node.up["coordinator"]
                    node.outward["coordinator"].append(message)

    def connect(self, node: Node, link: events.LinkName) -> None:
        if not node.up[link]:
            node.up[link] = True
            self.give(node, events.Connected(link))

    def lose(self, node: Node, link: events.LinkName) -> None:
        if node.up[link]:
            node.up[link] = False
            node.outward[link].clear()
            for peer in ("answers", "notices") if link == "data" else ("coordinator",):
                node.inward[peer].clear()
            self.give(node, events.Lost(link))

    def crash(self, node: Node) -> None:
        """Everything the broker knew is gone."""
        for connection, _ in list(self.connections.values()):
            if connection.node is node:
                self.drop(connection, tell=False)
        for queue in [*node.inward.values(), *node.outward.values()]:
            queue.clear()
        node.up = {"data": False, "coordinator": False}
        node.core = BrokerCore(node.name, node.name, verify, limits=LIMITS)

    def execute(self) -> None:
        channel = self.random.choice(["c", "d"])
        for name, notice in self.cluster.execute(channel, lambda be: self.random.random() < 0.7).items():
            if self.nodes[name].up["data"]:
                self.nodes[name].inward["notices"].append(notice)

    def move_on(self, node: Node, peer: str) -> None:
        """One message on one of a node's links arrives."""
        if node.inward.get(peer) and self.random.random() < 0.5:
            self.give(node, events.Told(node.inward[peer].popleft()))
        elif node.outward.get(peer):
            message = node.outward[peer].popleft()
            if peer == "data":
                node.inward["answers"].append(self.cluster.answer(node.name, message))
            else:
                self.coordinate(node, message)
        elif node.inward.get(peer):
            self.give(node, events.Told(node.inward[peer].popleft()))

    def say(self, broker: str, message: coordination.FromCoordinator) -> None:
        if self.nodes[broker].up["coordinator"]:
            self.nodes[broker].inward["coordinator"].append(message)

    def prepare(self, name: str) -> None:
        place = self.places[name]
        broker, stay = (place.move.to, place.move.stay) if place.move else (place.broker, place.stay)
        self.say(broker, coordination.Prepare(name, stay, list(place.held.values())))

    def start_move(self, name: str) -> None:
        place = self.places[name]
        if place.move is None:
            self.last += 1
            place.move = Move("b" if place.broker == "a" else "a", place.stay + self.last)
            self.prepare(name)

    def give_up_move(self, name: str) -> None:
        place = self.places[name]
        if place.move:
            self.say(place.move.to, coordination.Release(name, place.move.stay))
            # The number is spent: what is said of it later is late.
            place.move = None

    def commit(self, name: str) -> None:
        place = self.places[name]
        if place.move:
            source, old = place.broker, place.stay
            place.broker, place.stay, place.move = place.move.to, place.move.stay, None
            self.moved += 1
            self.say(source, coordination.Release(name, old))

    def coordinate(self, node: Node, message: coordination.FromBroker) -> None:
        match message:
            case coordination.Hello():
                self.hello(node, message)
            case coordination.Prepared(name, stay):
                place = self.places[name]
                if place.move and place.move.stay == stay:
                    self.say(place.broker, coordination.Handover(name, place.stay, place.move.to))
            case coordination.Arrived(name, stay) | coordination.Absent(name, stay):
                place = self.places[name]
                absent = isinstance(message, coordination.Absent) and place.stay == stay
                arrived = isinstance(message, coordination.Arrived) and place.move and place.move.stay == stay
                if absent or arrived:
                    self.commit(name)
            case coordination.Unprepared(name, stay):
                place = self.places[name]
                if stay in (place.stay, place.move.stay if place.move else None):
                    self.say(node.name, coordination.Prepare(name, stay, list(place.held.values())))
            case coordination.Keep(ref, name, stay, held, gone):
                self.keep(node, ref, name, stay, held, gone)
            case coordination.Progress(cursors):
                for name, known in cursors.items():
                    self.progress(name, known)
            case coordination.Released(name, _, known):
                self.progress(name, known)

    def hello(self, node: Node, hello: coordination.Hello) -> None:
        for stay in [*hello.serving, *hello.prepared]:
            place = self.places[stay.subscriber]
            if place.move and place.move.stay == stay.stay and stay in hello.serving:
                self.commit(stay.subscriber)
            elif stay.stay != place.stay and not (place.move and place.move.stay == stay.stay):
                self.say(node.name, coordination.Release(stay.subscriber, stay.stay))
        for name, place in self.places.items():
            if place.broker == node.name:
                self.say(node.name, coordination.Prepare(name, place.stay, list(place.held.values())))
            if place.move and place.move.to == node.name:
                self.prepare(name)
            elif place.move and place.broker == node.name:
                self.say(node.name, coordination.Handover(name, place.stay, place.move.to))

    def keep(self, node: Node, ref: int, name: str, stay: int, held: Held, gone: bool) -> None:
        place = self.places[name]
        if stay != place.stay:
            return
        if gone:
            place.held.pop(held.subscription, None)
        else:
            place.held.setdefault(held.subscription, held)
        if place.move:
            self.prepare(name)
        self.say(node.name, coordination.Kept(ref))

    def progress(self, name: str, known: subscriber.Cursors) -> None:
        held = self.places[name].held
        for be, cursor in known.items():
            if be in held and isinstance(cursor, int) and held[be].cursor < cursor:
                held[be] = msgspec.structs.replace(held[be], cursor=cursor)

    def dial(self, person: Person, broker: str) -> Connection:
        self.last += 1
        connection = Connection(self.last, self.nodes[broker])
        self.connections[connection.id] = (connection, person)
        self.give(connection.node, events.Opened(connection.id))
        login = subscriber.Login(f"token-{person.name}", cursors=dict(person.had))
        connection.inward.append(msgspec.json.encode(login))
        return connection

    def drop(self, connection: Connection, tell: bool = True) -> None:
        _, person = self.connections.pop(connection.id)
        person.main = None if person.main is connection else person.main
        person.next = None if person.next is connection else person.next
        if tell:
            self.give(connection.node, events.Closed(connection.id))

    def ask(self, person: Person, request: subscriber.Request) -> None:
        if person.main and person.main.welcomed:
            person.main.inward.append(msgspec.json.encode(request))

    def subscribe(self, person: Person) -> None:
        person.request += 1
        wanted = {"v": self.random.randrange(3)}
        self.ask(person, subscriber.Subscribe(person.request, self.random.choice(["c", "d"]), wanted))

    def unsubscribe(self, person: Person) -> None:
        if person.had and person.main and person.main.welcomed:
            person.request += 1
            be = self.random.choice(sorted(person.had))
            del person.had[be]
            person.given_up.add(be)
            self.ask(person, subscriber.Unsubscribe(person.request, be))

    def speak(self, connection: Connection) -> None:
        """One message of a subscriber arrives at its broker."""
        if connection.inward and connection.id in self.connections:
            self.give(connection.node, events.Received(connection.id, connection.inward.popleft()))

    def listen(self, connection: Connection) -> None:
        """A subscriber reads one message."""
        if connection.outward:
            person = self.connections[connection.id][1]
            frame = connection.outward.popleft()
            if not connection.ending:
                waiting = sum(map(len, connection.outward))
                self.give(connection.node, events.Flushed(connection.id, waiting))
            self.understand(person, connection, NOTES.decode(frame))
        elif connection.ending:
            self.drop(connection, tell=False)

    def understand(self, person: Person, connection: Connection, message: subscriber.Answer) -> None:
        match message:
            case subscriber.Welcome():
                self.welcomed(person, connection)
            case subscriber.Notes(notes):
                for note in notes:
                    self.judge(person, note)
                if notes and self.random.random() < 0.7:
                    connection.inward.append(msgspec.json.encode(subscriber.Acknowledge(dict(person.had))))
            case subscriber.Subscribed(_, held):
                if held.subscription not in person.given_up:
                    person.had.setdefault(held.subscription, held.cursor)
            case subscriber.Moved(url):
                if person.next is None and connection is person.main and connection.node.name != url:
                    person.next = self.dial(person, url)

    def welcomed(self, person: Person, connection: Connection) -> None:
        # What is not listed, the coordinator is about to tell the broker of.
        connection.welcomed = True
        if connection is person.next:
            old, person.main, person.next = person.main, connection, None
            if old:
                self.drop(old)

    def judge(self, person: Person, note: subscriber.Note) -> None:
        assert bytes(note.payload) == b'[{"be":%d,"n":%d}]' % (note.s, note.e)
        assert note.e in self.cluster.found[note.s]
        if note.s not in person.had:
            # Just given up on another connection, or an answer to Subscribe that was lost.
            return
        if note.e <= person.had[note.s]:
            person.duplicates += 1
            return
        due = next(e for e in self.cluster.found[note.s] if e > person.had[note.s])
        assert note.e == due, f"{person.name} got execution {note.e} of {note.s}, but {due} was next"
        person.had[note.s] = note.e
        person.received += 1

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for node in self.nodes.values():
            if (wake := node.core.wake()) is not None and wake <= self.now:
                self.give(node, events.Tick())

    def visit(self, person: Person) -> None:
        """Connects a subscriber that is not."""
        if person.main is None:
            person.main = self.dial(person, self.places[person.name].broker)
