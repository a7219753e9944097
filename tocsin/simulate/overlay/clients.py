"""Programs of publishers and subscribers, and what their applications were given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tocsin.overlay import events, publisher, subscriber
from tocsin.overlay.dialogue import Gap, HeadCursor, Move, Note, Subscribe
from tocsin.overlay.publisher import OverlayPublisher
from tocsin.overlay.subscriber import OverlaySubscriber
from tocsin.simulate.network import SimulatedConnection
from tocsin.simulate.overlay.brokers import CLIENT
from tocsin.simulate.process import CoreProcess, SimulatedWorld


@dataclass
class Passage:
    """What an application has had of a head under one incarnation of its log.

    ``began`` is the offset after which everything was promised, ``left`` the cursor when another incarnation followed,
    and ``lost`` the gap without an end that was told then.
    """

    incarnation: str
    began: int
    notes: list[Note] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    left: int | None = None
    lost: Gap | None = None


@dataclass
class Album:
    """What a subscriber's application has had; it outlives the program, as the cursors do that it keeps with it.

    A program that ``refuses`` ignores every ``Move``; those are in ``refused``.
    """

    name: str
    where: str
    refuses: bool = False
    cursors: dict[str, HeadCursor] = field(default_factory=dict)
    passages: dict[str, list[Passage]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    refused: list[Move] = field(default_factory=list)
    given_up: str = ""

    def give(self, note: Note, cursor: HeadCursor) -> None:
        """A publication comes, which takes the cursor here."""
        self.notes.append(note)
        self.follow(note.head, cursor).notes.append(note)

    def miss(self, gap: Gap, cursor: HeadCursor) -> None:
        """Something is told to be gone."""
        self.gaps.append(gap)
        if gap.last is None:
            self.passages[gap.head][-1].lost = gap
            self.follow(gap.head, cursor)
        else:
            self.follow(gap.head, cursor).gaps.append(gap)

    def follow(self, head: str, cursor: HeadCursor) -> Passage:
        """The cursor is here; the passage that it is in."""
        passages = self.passages.setdefault(head, [])
        if not passages or passages[-1].incarnation != cursor.incarnation:
            if passages:
                passages[-1].left = self.cursors[head].offset
            passages.append(Passage(cursor.incarnation, cursor.offset))
        self.cursors[head] = cursor
        return passages[-1]


class _Connection:
    """To an edge or a head."""

    def __init__(self, process: CoreProcess, opened: Any, said: Callable[[Any], Any], lost: Any) -> None:
        self._process, self._opened, self._said, self._lost = process, opened, said, lost

    def opened(self) -> None:
        """It stands."""
        self._process.tell(self._opened)

    def received(self, link: SimulatedConnection, message: Any) -> None:  # noqa: ARG002
        """The broker says something."""
        self._process.tell(self._said(message))

    def lost(self, link: SimulatedConnection, code: int) -> None:  # noqa: ARG002
        """It is over, or could not be opened."""
        self._process.tell(self._lost)

    def flushed(self, link: SimulatedConnection) -> None:
        """Nothing waits for that."""


class SubscriberHost(CoreProcess):
    """A subscriber's program. ``moving`` is told when it sets out for another edge."""

    core: OverlaySubscriber

    def __init__(self, world: SimulatedWorld, album: Album, edges: list[str]) -> None:
        core = OverlaySubscriber(album.name, album.where, edges, Random(world.random.random()), album.cursors)
        super().__init__(world, album.name, core, events.Tick())
        self.album = album
        self.moving: Callable[[SubscriberHost], None] | None = None
        self.links: dict[int, SimulatedConnection] = {}

    def start(self) -> None:
        """Goes online."""
        self.tell(subscriber.Start())

    def insist(self, times: int) -> None:
        """Subscribes again and again on all connections, which it need not."""
        for link in list(self.links.values()):
            for _ in range(times):
                link.send(0, Subscribe(self.album.name, self.album.where, dict(self.core.cursors)))

    def tell(self, event: Any, data: bytes | str = b"") -> None:
        """Has the core handle an event. The application keeps the cursors with what it was given."""
        if self.album.refuses and isinstance(event, subscriber.EdgeSaid) and isinstance(event.message, Move):
            self.album.refused.append(event.message)
            return
        super().tell(event, data)
        if self.moving and isinstance(event, subscriber.EdgeSaid) and isinstance(event.message, Move):
            self.moving(self)
        if self.alive:
            for head, cursor in self.core.cursors.items():
                self.album.follow(head, cursor)

    def carry_out(self, action: subscriber.SubscriberAction) -> None:
        """Does what the core wants done."""
        match action:
            case subscriber.OpenEdge(number, edge):
                said = lambda message: subscriber.EdgeSaid(number, message)  # noqa: E731
                peer = _Connection(self, subscriber.EdgeOpened(number), said, subscriber.EdgeLost(number))
                link = self.links[number] = self.world.network.dial(self.host, edge, CLIENT, peer)
                link.when_open = peer.opened
            case subscriber.SendEdge(number, message):
                self.links[number].send(0, message)
            case subscriber.CloseEdge(number):
                self.links.pop(number).close(0)
            case subscriber.Give(note):
                self.album.give(note, self.core.cursors[note.head])
            case subscriber.Miss(gap):
                self.album.miss(gap, self.core.cursors[gap.head])
            case subscriber.GiveUp(reason):
                self.album.given_up = reason


class PublisherHost(CoreProcess):
    """A publisher's program."""

    core: OverlayPublisher

    def __init__(self, world: SimulatedWorld, name: str, head: str) -> None:
        super().__init__(world, name, OverlayPublisher(name), events.Tick())
        self._head = head
        self._link: SimulatedConnection | None = None
        self.published: list[dict[str, Any]] = []

    def start(self) -> None:
        """Goes online."""
        self.tell(events.Tick())

    def publish(self, content: dict[str, Any]) -> None:
        """Publishes something."""
        self.published.append(content)
        self.tell(publisher.PublishContent(content))

    def carry_out(self, action: publisher.PublisherAction) -> None:
        """Does what the core wants done."""
        match action:
            case publisher.OpenClusterHead():
                peer = _Connection(
                    self, publisher.ClusterHeadOpened(), publisher.ClusterHeadSaid, publisher.ClusterHeadLost()
                )
                self._link = self.world.network.dial(self.host, self._head, CLIENT, peer)
                self._link.when_open = peer.opened
            case publisher.SendClusterHead(message):
                if self._link:
                    self._link.send(0, message)
