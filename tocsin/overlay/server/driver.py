"""The driver: carries events to a broker's core, and does what the core wants done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from time import perf_counter
from typing import Final

from tocsin.alarm import Alarm
from tocsin.content.filter import Filter
from tocsin.content.values import Publication
from tocsin.errors import FilterError, InvalidError
from tocsin.log import get_logger
from tocsin.overlay import actions, events
from tocsin.overlay.dialogue import ToEdge, ToHead
from tocsin.overlay.edge import Edge
from tocsin.overlay.head import Head
from tocsin.overlay.messages import FromLink
from tocsin.overlay.server.outgoing import CIRCLE, REPLACED, UNREADABLE, Outgoing, encode
from tocsin.overlay.server.writer import LogWriter

log = get_logger(__name__)

FLUSHED_BYTES: Final = 65_536
"""With no more than this waiting, a client has read what it was sent."""


class OverlayDriver:
    """Owns the core. All its methods belong to the event loop's thread.

    ``writer`` stores what a head wants stored. ``matched`` and ``matching_seconds`` count what it took an edge to match
    publications, and nothing else that it does with them; ``sent_bytes`` what clients were sent. What can go wrong: the
    core itself fails. Then :attr:`failed` raises, for what is in memory can no longer be trusted: start again.
    """

    def __init__(self, core: Head | Edge, writer: LogWriter | None = None) -> None:
        self.core, self._writer = core, writer
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(lambda: self.tell(events.Tick()))
        self._numbers = count(1)
        self._links: dict[str, Outgoing] = {}
        self._clients: dict[int, Outgoing] = {}
        self.matched, self.matching_seconds, self.sent_bytes = 0, 0.0, 0
        if isinstance(core, Edge):
            core.subscriptions.match = self._measure_matching(core.subscriptions.match)
        self.failed: asyncio.Future[None] = self._loop.create_future()

    @property
    def now(self) -> float:
        """The core's time."""
        return self._loop.time()

    @property
    def links(self) -> list[str]:
        """The brokers that there are links to."""
        return list(self._links)

    @property
    def clients(self) -> int:
        """How many connections there are of publishers or subscribers."""
        return len(self._clients)

    @property
    def waiting_bytes(self) -> int:
        """What waits to be sent to clients."""
        return sum(outgoing.size for outgoing in self._clients.values())

    def stop(self) -> None:
        """Does nothing more."""
        self._alarm.cancel()
        if not self.failed.done():
            self.failed.cancel()

    def open_link(self, broker: str, is_head: bool, outgoing: Outgoing) -> None:
        """A link stands; one to the same broker that stood before does no more."""
        if before := self._links.get(broker):
            before.end(REPLACED, f"{broker} has linked again")
            self.lose_link(broker, before)
        self._links[broker] = outgoing
        self.tell(events.LinkOpened(broker, is_head))

    def lose_link(self, broker: str, outgoing: Outgoing) -> None:
        """A link is over."""
        if self._links.get(broker) is outgoing:
            del self._links[broker]
            self.tell(events.LinkLost(broker))

    def hear_link(self, broker: str, outgoing: Outgoing, message: FromLink) -> None:
        """Another broker says something; raises InvalidError for what cannot be read, after which it must be lost."""
        if self._links.get(broker) is not outgoing or self.failed.done():
            return
        try:
            self._do_all(self.core.handle(self.now, events.LinkSaid(broker, message)))
        except FilterError as error:
            raise InvalidError(f"a filter cannot be read: {error}") from None
        except Exception as error:
            self._fail(error, events.LinkSaid(broker, message))

    def open_client(self, outgoing: Outgoing) -> int:
        """A publisher or a subscriber connects; returns its number."""
        client = next(self._numbers)
        self._clients[client] = outgoing
        return client

    def hear_client(self, client: int, message: ToEdge | ToHead) -> None:
        """It says something."""
        if client in self._clients:
            self.tell(events.ClientSaid(client, message))

    def lose_client(self, client: int) -> None:
        """It is gone."""
        if self._clients.pop(client, None):
            self.tell(events.ClientLost(client))

    def tell(self, event: events.Event) -> None:
        """Something has happened."""
        if self.failed.done():
            return
        try:
            self._do_all(self.core.handle(self.now, event))
        except Exception as error:
            self._fail(error, event)

    def _fail(self, error: Exception, event: events.Event) -> None:
        log.exception("a fault in the broker's core", event=type(event).__name__)
        if not self.failed.done():
            self.failed.set_exception(error)

    def _do_all(self, wanted: list[actions.Action]) -> None:
        for action in wanted:
            self._do(action)
        wake = self.core.wake()
        if wake is not None and not self.failed.done():
            self._alarm.set(wake)

    def _do(self, action: actions.Action) -> None:
        match action:
            case actions.SendNote(clients, note):
                text = encode(note).decode()
                for client in clients:
                    self._send(client, text)
            case actions.SendLink(broker, message, urgent):
                if link := self._links.get(broker):
                    link.put(encode(message).decode(), urgent)
            case actions.SendClient(client, reply, urgent):
                self._send(client, encode(reply).decode(), urgent)
            case actions.AppendLog(publication):
                assert self._writer is not None
                self._writer.add(publication)
            case actions.ForgetPublishers(names, floor):
                assert self._writer is not None
                self._writer.forget(names, floor)
            case actions.AwaitFlush(client):
                if outgoing := self._clients.get(client):
                    outgoing.when_flushed(FLUSHED_BYTES, lambda: self._flushed(client))
            case actions.CloseClient(client, reason):
                if outgoing := self._clients.pop(client, None):
                    outgoing.end(UNREADABLE, reason)
            case actions.CloseLink(broker, reason, circle):
                if outgoing := self._links.pop(broker, None):
                    outgoing.end(CIRCLE if circle else UNREADABLE, reason)

    def _flushed(self, client: int) -> None:
        """From the loop, as the core may be in the middle of something."""
        self._loop.call_soon(self.tell, events.Flushed(client))

    def _measure_matching(self, match: Callable[[Publication], list[Filter]]) -> Callable[[Publication], list[Filter]]:
        def match_and_measure(content: Publication) -> list[Filter]:
            began = perf_counter()
            matched = match(content)
            self.matched, self.matching_seconds = self.matched + 1, self.matching_seconds + perf_counter() - began
            return matched

        return match_and_measure

    def _send(self, client: int, text: str, urgent: bool = False) -> None:
        if outgoing := self._clients.get(client):
            self.sent_bytes += len(text)
            outgoing.put(text, urgent)
