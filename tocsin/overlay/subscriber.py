"""A subscriber: comes to an edge with what it wants and how far it is, and drops what it has had.

Without sockets and clock: connections are numbered here and opened by the driver. What the application must keep for
another day is in :attr:`OverlaySubscriber.cursors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from random import Random
from typing import Final

import msgspec

from tocsin.overlay.dialogue import (
    Began,
    Gap,
    HeadCursor,
    Move,
    Note,
    Passed,
    Refused,
    Settle,
    Subscribe,
    ToEdge,
    ToSubscriber,
    Unsubscribe,
)
from tocsin.overlay.events import Tick

FIRST_WAIT: Final = 0.2
LONGEST_WAIT: Final = 5.0
SERVED_SECONDS: Final = 5.0
"""How long whoever may leave an edge waits to hear from the other one: they are not heard on the same connection."""


class Start(msgspec.Struct, frozen=True):
    """Go to an edge."""


class EdgeOpened(msgspec.Struct, frozen=True):
    """A connection stands."""

    connection: int


class EdgeLost(msgspec.Struct, frozen=True):
    """A connection is over, or could not be opened."""

    connection: int


class EdgeRefused(msgspec.Struct, frozen=True):
    """An edge does not take this subscriber, and to ask it again would not help."""

    connection: int
    reason: str


class EdgeSaid(msgspec.Struct, frozen=True):
    """An edge says something."""

    connection: int
    message: ToSubscriber


class OpenEdge(msgspec.Struct, frozen=True):
    """Open a connection to an edge; to be answered with EdgeOpened, EdgeLost or EdgeRefused."""

    connection: int
    edge: str


class SendEdge(msgspec.Struct, frozen=True):
    """Say something to an edge."""

    connection: int
    message: ToEdge


class CloseEdge(msgspec.Struct, frozen=True):
    """End a connection, after what was said on it. The core has forgotten it already."""

    connection: int


class Give(msgspec.Struct, frozen=True):
    """Hand a publication to the application."""

    note: Note


class Miss(msgspec.Struct, frozen=True):
    """Tell the application that something is not kept any more."""

    gap: Gap


class GiveUp(msgspec.Struct, frozen=True):
    """Tell the application that it cannot be had, and why. Nothing more is done."""

    reason: str


SubscriberEvent = Start | EdgeOpened | EdgeLost | EdgeRefused | EdgeSaid | Tick
SubscriberAction = OpenEdge | SendEdge | CloseEdge | Give | Miss | GiveUp


class _Connection:
    """To one edge. A session's id, and how many migrate in it, if it moves there.

    ``since`` has the heads that this edge serves it from, each with where it gives everything after.
    """

    def __init__(self, number: int, edge: str, session: str = "", migrating: int = 0) -> None:
        self.number, self.edge, self.session, self.migrating = number, edge, session, migrating
        self.since: dict[str, HeadCursor] = {}


class OverlaySubscriber:
    """One subscription of a program, from its start to its end.

    Whoever sends it something has sent everything before it, from a cursor that it had itself. So what is not beyond
    its cursor is a duplicate, and two edges may serve it at once while it moves. An edge that begins beyond its cursor,
    as the one it moves to may with a head that it had not heard of when it came, is not believed but asked again.

    A head that has lost its log, or has an older copy of it, numbers under another incarnation. The edge says how far
    both are the same: whoever was beyond that is told of a gap without an end, and begins anew there. An edge that was
    told of a cursor of yet another incarnation is asked again, too.

    Args:
        where: the filter.
        edges: where it may go, the nearest first.
        cursors: how far it is, if it has been there before.

    What can go wrong: an edge is not there, or dies. It tries them in turn, and waits longer after each round. The edge
    to which it moves is not there, or refuses it: it stays. The one it comes from dies: it goes on at the other. An
    edge does not take it: the others are tried, and if none does, it gives up; as it does when its own edge cannot make
    sense of what it wants, for no other could.
    """

    def __init__(
        self, name: str, where: str, edges: Sequence[str], random: Random, cursors: dict[str, HeadCursor] | None = None
    ) -> None:
        self.name, self.where = name, where
        self.cursors = dict(cursors or {})
        self._edges, self._random = list(edges), random
        self._actions: list[SubscriberAction] = []
        self._connections = 0
        self._failures = 0
        self._refusing: set[str] = set()
        self._home: _Connection | None = None
        self._next: _Connection | None = None
        # When it may leave its edge, and until when it waits for the other one to serve it.
        self._leave = self._stay = inf
        self._retry = inf

    @property
    def edge(self) -> str | None:
        """Where it is, or wants to be."""
        return self._home.edge if self._home else None

    def handle(self, now: float, event: SubscriberEvent) -> list[SubscriberAction]:
        """What is to be done, in this order."""
        match event:
            case EdgeSaid(number, message):
                if connection := self._connection(number):
                    self._said(now, connection, message)
            case EdgeOpened(number):
                if connection := self._connection(number):
                    self._subscribe(connection)
            case EdgeLost(number):
                self._lost(now, number)
            case EdgeRefused(number, reason):
                self._refused(now, number, reason)
            case Start():
                self._go_home()
        self._due(now)
        actions, self._actions = self._actions, []
        return actions

    def wake(self) -> float | None:
        """When it wants a Tick, at the latest."""
        wake = min(self._retry, self._leave if self._is_served_there else self._stay)
        return wake if wake < inf else None

    def _said(self, now: float, connection: _Connection, message: ToSubscriber) -> None:
        match message:
            case Note(head, offset):
                if self._goes_on(connection, head, offset):
                    self._do(Give(message))
            case Passed(head, offset):
                self._goes_on(connection, head, offset)
            case Began():
                self._began(connection, message)
            case Gap(head, first, int(last)):
                before = self.cursors.get(head)
                if before and self._goes_on(connection, head, last):
                    self._do(Miss(Gap(head, max(first, before.offset + 1), last)))
            case Move(edge, session, migrating):
                if connection is self._home and self._next is None:
                    self._next = self._open(edge, session, migrating)
            case Settle(session, seconds):
                self._settle(now, session, seconds)
            case Refused(reason):
                if connection is self._next:
                    self._do(CloseEdge(connection.number))
                    self._lost(now, connection.number)
                else:
                    self._give_up(reason)

    def _began(self, connection: _Connection, began: Began) -> None:
        self._failures = 0
        self._refusing.clear()
        since = connection.since[began.head] = HeadCursor(began.offset, began.incarnation)
        cursor = self.cursors.setdefault(began.head, since)
        if cursor.incarnation == began.known != began.incarnation:
            self._begin_anew(began, cursor)
        if not self._follows(since, self.cursors[began.head]):
            self._subscribe(connection)

    def _begin_anew(self, began: Began, cursor: HeadCursor) -> None:
        """The head's log has another incarnation than the cursor."""
        if cursor.offset > began.shared:
            self._do(Miss(Gap(began.head, cursor.offset + 1, None)))
        self.cursors[began.head] = HeadCursor(max(0, min(cursor.offset, began.shared)), began.incarnation)

    def _goes_on(self, connection: _Connection, head: str, offset: int) -> bool:
        """Whether this is beyond the cursor, which then is here."""
        cursor, since = self.cursors.get(head), connection.since.get(head)
        if cursor is None or since is None or offset <= cursor.offset or not self._follows(since, cursor):
            return False
        self.cursors[head] = HeadCursor(offset, cursor.incarnation)
        return True

    @staticmethod
    def _follows(since: HeadCursor, cursor: HeadCursor) -> bool:
        """Whether who gives everything after ``since`` leaves out nothing after the cursor."""
        return since.incarnation == cursor.incarnation and since.offset <= cursor.offset

    def _connection(self, number: int) -> _Connection | None:
        if self._home and self._home.number == number:
            return self._home
        return self._next if self._next and self._next.number == number else None

    def _open(self, edge: str, session: str = "", migrating: int = 0) -> _Connection:
        self._connections += 1
        self._do(OpenEdge(self._connections, edge))
        return _Connection(self._connections, edge, session, migrating)

    def _go_home(self) -> None:
        self._home = self._open(self._edges[self._failures % len(self._edges)])

    def _subscribe(self, connection: _Connection) -> None:
        cursors = dict(self.cursors)
        subscribe = Subscribe(self.name, self.where, cursors, connection.session, connection.migrating)
        self._do(SendEdge(connection.number, subscribe))

    def _lost(self, now: float, number: int) -> None:
        if self._next and self._next.number == number:
            self._next, self._leave, self._stay = None, inf, inf
        elif self._home and self._home.number == number:
            self._home, self._next, self._leave, self._stay = self._next, None, inf, inf
            if self._home is None:
                self._failures += 1
                self._retry = now + self._wait()

    def _refused(self, now: float, number: int, reason: str) -> None:
        if self._home and self._home.number == number and not self._next:
            self._refusing.add(self._home.edge)
            if self._refusing.issuperset(self._edges):
                self._give_up(reason)
                return
        self._lost(now, number)

    def _settle(self, now: float, session: str, seconds: float) -> None:
        if self._next and self._next.session == session:
            self._leave = now + seconds
            self._stay = max(self._leave, now + SERVED_SECONDS)

    @property
    def _is_served_there(self) -> bool:
        return bool(self._next and self._next.since)

    def _due(self, now: float) -> None:
        if self._retry <= now:
            self._retry = inf
            self._go_home()
        if self._home and self._next:
            if self._leave <= now and self._is_served_there:
                self._move(self._home, self._next)
            elif self._stay <= now:
                self._do(CloseEdge(self._next.number))
                self._next, self._leave, self._stay = None, inf, inf

    def _move(self, home: _Connection, to: _Connection) -> None:
        self._do(SendEdge(home.number, Unsubscribe()))
        self._do(CloseEdge(home.number))
        self._home, self._next, self._leave, self._stay = to, None, inf, inf

    def _give_up(self, reason: str) -> None:
        for connection in (self._home, self._next):
            if connection:
                self._do(CloseEdge(connection.number))
        self._home = self._next = None
        self._retry = self._leave = self._stay = inf
        self._do(GiveUp(reason))

    def _wait(self) -> float:
        rounds = min(self._failures // len(self._edges), 10)
        return min(LONGEST_WAIT, FIRST_WAIT * 2.0**rounds) * self._random.uniform(0.5, 1.0)

    def _do(self, action: SubscriberAction) -> None:
        self._actions.append(action)
