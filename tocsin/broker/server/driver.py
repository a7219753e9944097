"""Runs the core: gives it what happens, and carries out what it wants, in order. All on the event loop's thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from tocsin.alarm import Alarm
from tocsin.broker import actions, events
from tocsin.broker.core import BrokerCore
from tocsin.broker.server import frames
from tocsin.broker.server.connection import SubscriberConnection
from tocsin.log import get_logger
from tocsin.model import control, coordination
from tocsin.model.trust import Trust

log = get_logger(__name__)


class MessageSender(Protocol):
    """Where a link's messages go."""

    def send(self, message: control.Request | coordination.FromBroker) -> None: ...


class BrokerDriver:
    """The core with its clock. ``start`` says where its actions go, before anything happens.

    What can go wrong: a fault in the core is logged, and whatever it had wanted done until then is done with the next
    event.
    """

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self.linked: dict[events.LinkName, bool] = {"coordinator": False, "data": False}
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(self._tick)
        self._settling, self._busy = False, False
        self._waiting: deque[events.Event] = deque()
        self._connection: Callable[[int], SubscriberConnection | None] = lambda _: None
        self._links: Mapping[events.LinkName, MessageSender] = {}
        self._publish: Callable[[actions.PublishBatch], None] = lambda _: None
        self._learn: Callable[[Trust], None] = lambda _: None

    def start(
        self,
        connection: Callable[[int], SubscriberConnection | None],
        links: Mapping[events.LinkName, MessageSender],
        publish: Callable[[actions.PublishBatch], None],
        learn: Callable[[Trust], None],
    ) -> None:
        """Where to find a session's connection and the links' other ends, who publishes, and who checks tokens."""
        self._connection, self._links, self._publish, self._learn = connection, links, publish, learn

    def stop(self) -> None:
        """No more ticks."""
        self._alarm.cancel()
        self._settling = True

    def opened(self, session: int) -> None:
        """A subscriber's connection is open."""
        self.feed(events.Opened(session))

    def received(self, session: int, data: bytes) -> None:
        """A subscriber has said something."""
        self.feed(events.Received(session, data))

    def flushed(self, session: int, waiting: int) -> None:
        """So many bytes wait for a subscriber."""
        self.feed(events.Flushed(session, waiting))

    def closed(self, session: int) -> None:
        """A subscriber's connection is gone."""
        self.feed(events.Closed(session))

    def stranger(self) -> int | None:
        """The session that has been without a login for longest."""
        return self.core.stranger

    def connected(self, link: events.LinkName) -> None:
        """A link is up."""
        self.linked[link] = True
        self.feed(events.Connected(link))

    def lost(self, link: events.LinkName) -> None:
        """A link is down."""
        self.linked[link] = False
        self.feed(events.Lost(link))

    def feed(self, event: events.Event) -> None:
        """Tells the core, and does what it wants. What happens while that is done waits until it is."""
        self._waiting.append(event)
        if self._busy:
            return
        self._busy = True
        try:
            while self._waiting:
                self._handle(self._waiting.popleft())
        finally:
            self._busy = False

    def _handle(self, event: events.Event) -> None:
        try:
            wanted = self.core.handle(self._loop.time(), event)
        except Exception:
            log.exception("fault in the broker's core", cause=type(event).__name__)
            return
        self._carry_out(wanted)
        if not self._settling:
            self._settling = True
            self._loop.call_soon(self._settle)

    def _carry_out(self, wanted: list[actions.Action]) -> None:
        for action in wanted:
            if type(action) is actions.SendMany:
                self._send(action.sessions, action.frame)
            elif type(action) is actions.Send:
                self._send((action.session,), action.frame)
            else:
                self._do(action)

    def _send(self, sessions: Iterable[int], payload: bytes) -> None:
        find, frame = self._connection, frames.text(payload)
        for session in sessions:
            connection = find(session)
            if connection:
                connection.send(frame)

    def _do(self, action: actions.Action) -> None:
        match action:
            case actions.Close(session, code, reason):
                if connection := self._connection(session):
                    connection.close(code, reason)
            case actions.ReadLater(session, seconds):
                if connection := self._connection(session):
                    connection.read_later(seconds)
            case actions.ToData(message):
                self._links["data"].send(message)
            case actions.ToCoordinator(message):
                self._links["coordinator"].send(message)
            case actions.PublishBatch():
                self._publish(action)
            case actions.TrustLearned(trust):
                self._learn(trust)

    def _settle(self) -> None:
        """Once after all that happened in a turn of the loop: sets the alarm."""
        self._settling = False
        at = self.core.wake()
        if at is not None:
            self._alarm.set(at)

    def _tick(self) -> None:
        self.feed(events.Tick())
