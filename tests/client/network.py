"""A model of the brokers and the coordinator, as unreliable as they may be: for tests of a subscriber's core.

What is durable (results, subscriptions, acknowledged cursors, the subscriber's place) is kept here; a broker's sessions
are gone with their connection. Messages of one connection keep their order and connections do not wait for each other.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random

import msgspec
from msgspec import Raw

from tocsin.client.core.events import Event, Lost, Opened, Received
from tocsin.model.histories import from_wire
from tocsin.model.subscriber import (
    VERSION,
    Acknowledge,
    Answer,
    Code,
    Error,
    Held,
    Login,
    Moved,
    Note,
    Notes,
    Request,
    Slow,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
    Welcome,
)

URLS = ["ws://a", "ws://b", "ws://c"]
CHANNELS = {"One": 1, "Two": 2, "Three": 3}


@dataclass
class Link:
    """A connection: messages on their way to the broker and to the subscriber, and how far each subscription is sent
    (None before login)."""

    url: str
    upward: deque[bytes] = field(default_factory=deque)
    downward: deque[Answer] = field(default_factory=deque)
    opened: bool = False
    closing: bool = False
    closed: int | None = None
    sent: dict[int, int] | None = None


class Network:
    """Brokers, coordinator and data cluster. ``troubled`` is whether anything goes wrong at random."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.troubled = True
        self.place = random.choice(URLS)
        self.target: str | None = None
        self.snapshot: dict[int, int] = {}
        self.results: dict[int, list[int]] = {number: [] for number in CHANNELS.values()}
        self.held: dict[int, int] = {}
        self.created: dict[int, int] = {}
        self.acknowledged: list[dict[int, int]] = []
        self.links: dict[int, Link] = {}
        self.current: Link | None = None

    def chance(self, probability: float) -> bool:
        return self.troubled and self.random.random() < probability

    def execute(self) -> None:
        """An execution finds something for some subscriptions; numbers have gaps."""
        number = self.random.choice(list(self.results))
        found = self.results[number]
        found.append((found[-1] if found else 0) + self.random.randint(1, 3))

    def prepare(self) -> None:
        """Another broker gets ready, with what is held now, and the subscriber's broker sends it there."""
        self.target = self.random.choice(URLS)
        self.snapshot = dict(self.held)
        for link in self.links.values():
            if link.url == self.place and link.sent is not None:
                link.downward.append(Moved(self.target))

    def crash(self) -> None:
        """A broker dies; a subscriber that was there is placed elsewhere."""
        url = self.random.choice(URLS)
        for link in self.links.values():
            if link.url == url:
                self._end(link, 1006)
        if self.target == url:
            self.target = None
        if self.place == url:
            self.place = self.random.choice(URLS)

    def cut(self) -> None:
        """Connections end, with whatever is on its way."""
        for link in self.links.values():
            if self.random.random() < 0.5:
                self._end(link, self.random.choice([1006, 1001, 1011, Code.LATE]))

    def step(self, number: int) -> Event | None:
        """Something happens on a connection; gives what the subscriber notices of it."""
        link = self.links[number]
        if link.sent is not None and link is not self.current and self.random.random() < 0.2:
            self._end(link, Code.ELSEWHERE)
        if link.upward and link.opened and link.closed is None and self.random.random() < 0.6:
            self._handle(link, link.upward.popleft())
        elif link.sent is not None and link.closed is None and self.random.random() < 0.5:
            self._collect(link)
        if link.closing:
            if not link.upward or link.closed is not None or self.chance(0.2):
                del self.links[number]
            return None
        if not link.opened and link.closed is None:
            link.opened = True
            return Opened(number)
        if link.downward:
            return Received(number, msgspec.json.encode(link.downward.popleft()))
        if link.closed is not None:
            del self.links[number]
            return Lost(number, link.closed)
        return None

    def _end(self, link: Link, code: int) -> None:
        link.closed = code
        link.sent = None
        link.upward.clear()
        if self.random.random() < 0.5:
            link.downward.clear()

    def _handle(self, link: Link, text: bytes) -> None:
        request: Request = msgspec.json.decode(text, type=Request)
        match request:
            case Login():
                self._login(link, request)
            case Acknowledge(cursors):
                self._acknowledge({number: from_wire(cursor, "").execution for number, cursor in cursors.items()})
            # What is asked in an earlier stay is late.
            case _ if link is not self.current:
                return
            case Subscribe(id=id) | Unsubscribe(id=id) if self.chance(0.2):
                link.downward.append(Error("busy", "later", id, 0.1))
            case Subscribe(id, channel):
                self._subscribe(link, id, channel)
            case Unsubscribe(id, number):
                self.held.pop(number, None)
                self.created.pop(number, None)
                if link.sent is not None:
                    link.sent.pop(number, None)
                link.downward.append(Unsubscribed(id, number))

    def _login(self, link: Link, login: Login) -> None:
        if link.url not in (self.place, self.target) or self.chance(0.1):
            return self._end(link, Code.ELSEWHERE)
        arriving = link.url == self.target and link.url != self.place
        for other in self.links.values():
            if other is not link and other.sent is not None and other.url == link.url:
                self._end(other, Code.REPLACED)
        if arriving:
            self.place, self.target = link.url, None
        self.current = link
        # A broker that was prepared may not know yet what has changed since.
        stale = self.snapshot if arriving and self.chance(0.5) else self.held
        told = {number: from_wire(cursor, "").execution for number, cursor in login.cursors.items()}
        link.sent = {number: told.get(number, self.held.get(number, stale[number])) for number in stale}
        held = [self._shown(number, cursor) for number, cursor in link.sent.items()]
        link.downward.append(Welcome("ann", link.url, VERSION, held))
        return None

    def _shown(self, number: int, cursor: int) -> Held:
        return Held(number, next(name for name, known in CHANNELS.items() if known == number), {}, cursor)

    def _acknowledge(self, cursors: dict[int, int]) -> None:
        self.acknowledged.append(cursors)
        for number, cursor in cursors.items():
            if number in self.held:
                self.held[number] = max(self.held[number], cursor)

    def _subscribe(self, link: Link, id: int, channel: str) -> None:
        number = CHANNELS[channel]
        if number not in self.held:
            found = self.results[number]
            self.held[number] = self.created[number] = found[-1] if found else 0
        if link.sent is not None:
            link.sent.setdefault(number, self.held[number])
        link.downward.append(Subscribed(id, self._shown(number, self.held[number])))

    def _collect(self, link: Link) -> None:
        """Sends what is next of each subscription, at times in several messages, at times once more."""
        assert link.sent is not None
        if self.chance(0.05):
            link.downward.append(Slow(1))
        notes: list[Note] = []
        for number, cursor in link.sent.items():
            # Sent once more: whatever comes after it comes again, too.
            start = max(0, cursor - 4) if number in self.held and self.chance(0.2) else cursor
            due = [execution for execution in self.results[number] if execution > start]
            due = due[: self.random.randint(1, 5)]
            notes += [Note(number, execution, Raw(b"[%d]" % execution)) for execution in due]
            link.sent[number] = max([cursor, *due])
        if notes:
            link.downward.append(Notes(notes))
