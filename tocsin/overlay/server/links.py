"""Links between brokers: those that others have opened to this one, and the one that it keeps up to its head.

A WebSocket each, messages of :mod:`tocsin.overlay.messages` both ways. Who dials says in the handshake its name, its
role and where clients reach it, and is told the name of the other. A handshake is refused with 401 without the
overlay's token, 400 where no link can be, 409 if both dial each other. A link is closed with 4400 after a message that
makes no sense, 4409 when the same broker has linked again, 4410 when heads are linked in a circle, and 4429 when what
is sent is not read.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from random import SystemRandom
from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from tocsin.broker.backoff import Backoff
from tocsin.dialling import GOING_AWAY, check_trust, dial, socket_url, tell_why
from tocsin.errors import ConflictError, InvalidError, TocsinError, UnavailableError
from tocsin.http import failures
from tocsin.log import get_logger
from tocsin.overlay.detection import Availability
from tocsin.overlay.head import Head
from tocsin.overlay.links import in_slices
from tocsin.overlay.messages import Change, ClusterLoad, Control, FromLink, LocalLoad, SessionAccept, Sync
from tocsin.overlay.server.access import OverlayAccess
from tocsin.overlay.server.driver import OverlayDriver
from tocsin.overlay.server.outgoing import CIRCLE, UNREADABLE, Outgoing
from tocsin.overlay.server.websocket import LINK, finish, receive
from tocsin.schema.refusals import UNDECODABLE, undecodable
from tocsin.settings.overlay import NAME
from tocsin.tasks import until_one_ends

log = get_logger(__name__)

BROKER_HEADER: Final = "Tocsin-Broker"
_PING_SECONDS: Final = 5.0
_MESSAGE: Final[msgspec.json.Decoder[FromLink]] = msgspec.json.Decoder(FromLink)
_STATES: Final = {state.value for state in Availability}


class LinkedBroker(msgspec.Struct, frozen=True):
    """Another broker that there is a link to: ``url`` is where it says that it is reached."""

    name: str
    role: str
    url: str


class OverlayLinks:
    """Serves ``/link`` of a head; an edge has nobody link to it. ``known`` are the brokers that there are links to;
    ``circle`` says, after a link was ended for that, which heads are linked in a circle."""

    def __init__(self, driver: OverlayDriver, access: OverlayAccess, most: int) -> None:
        self._driver, self._access, self._most = driver, access, most
        self.known: dict[str, LinkedBroker] = {}
        self.dialled = self.circle = ""

    async def endpoint(self, socket: WebSocket) -> None:
        """One link, from its handshake to its end."""
        try:
            self._access.require_broker(socket.headers.get("authorization"))
            broker = self._check(socket)
        except TocsinError as error:
            log.warning("a broker is refused", reason=str(error), client=socket.client.host if socket.client else None)
            await socket.send_denial_response(failures.failure(error))
            return
        outgoing = Outgoing(self._most)
        with suppress(WebSocketDisconnect):
            await socket.accept(headers=[(BROKER_HEADER.lower().encode(), self._driver.core.name.encode())])
            await self._hold(socket, broker, outgoing)
            await finish(socket, outgoing)

    def opened(self, broker: LinkedBroker, outgoing: Outgoing) -> None:
        """A link stands."""
        log.info("link is up", broker=broker.name, role=broker.role)
        self.known[broker.name] = broker
        self.circle = ""
        self._driver.open_link(broker.name, broker.role == "head", outgoing)

    async def said(self, broker: LinkedBroker, outgoing: Outgoing, text: str | bytes) -> None:
        """The broker says something; raises InvalidError for what cannot be read. What makes no sense and comes from
        further away is left out: whoever passes it on has not said it."""
        message = _decode(text)
        if not (nonsense := _nonsense(message)):
            for each in in_slices(message):
                self._driver.hear_link(broker.name, outgoing, each)
                if isinstance(each, Sync | Change):
                    # It may have taken long, and the next may be there already.
                    await asyncio.sleep(0)
        elif isinstance(message, Control) and message.sender != broker.name:
            log.warning("a message is left out", broker=message.sender, over=broker.name, reason=nonsense)
        else:
            raise InvalidError(nonsense)

    def lost(self, broker: LinkedBroker, outgoing: Outgoing, reason: str) -> None:
        """The link is over."""
        log.warning("link is down", broker=broker.name, reason=reason)
        if outgoing.ending and outgoing.ending.code == CIRCLE:
            self.circle = reason
        if self.known.get(broker.name) is broker:
            del self.known[broker.name]
        self._driver.lose_link(broker.name, outgoing)

    async def _hold(self, socket: WebSocket, broker: LinkedBroker, outgoing: Outgoing) -> None:
        reason = "it closed the connection"
        self.opened(broker, outgoing)
        try:
            reading = self._read(socket, broker, outgoing)
            await until_one_ends(reading, outgoing.send_all(socket.send_text), outgoing.ended())
        except InvalidError as error:
            reason = str(error)
            outgoing.end(UNREADABLE, reason)
        finally:
            self.lost(broker, outgoing, outgoing.ending.reason if outgoing.ending else reason)

    async def _read(self, socket: WebSocket, broker: LinkedBroker, outgoing: Outgoing) -> None:
        while True:
            await self.said(broker, outgoing, await receive(socket))

    def _check(self, socket: WebSocket) -> LinkedBroker:
        """Who links, if it may."""
        own, given = self._driver.core, socket.query_params
        name, role = given.get("broker", ""), given.get("role", "")
        if not isinstance(own, Head):
            raise InvalidError(f"{own.name} is an edge: set overlay.head to the URL of a head")
        if not re.fullmatch(NAME, name) or role not in ("head", "edge"):
            raise InvalidError("a broker that links says its name and its role, as this version of Tocsin does")
        if name == own.name:
            raise InvalidError(f"a head called {name} is here already: give each broker an overlay.name of its own")
        if name == self.dialled:
            raise ConflictError(f"{own.name} links to {name}, so {name} must not link to it: clear one overlay.head")
        return LinkedBroker(name, role, given.get("url", ""))


class HeadLink:
    """The link of an edge to its head, or of a head to the next one: dialled again and again until the broker stops.

    ``expected`` is the name of the head that an edge was started for; empty for any.

    What can go wrong: the head is not there, refuses, is lost with or without a word, says what cannot be read, or does
    not take what it is told. Each ends the link, is logged once, and the head is dialled again.
    """

    def __init__(
        self,
        links: OverlayLinks,
        own: LinkedBroker,
        head: str,
        token: str,
        most: int,
        ca: str = "",
        expected: str = "",
    ) -> None:
        self._links, self._own, self._head, self._most, self._expected = links, own, head, most, expected
        self._url = f"{socket_url(head)}{LINK}?{urlencode({'broker': own.name, 'role': own.role, 'url': own.url})}"
        self._token, self._ca = token, ca
        check_trust(self._url, ca)
        self._backoff, self._told = Backoff(SystemRandom()), ""

    async def keep(self) -> None:
        """Keeps the link up, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self._hold()
                reason = self._links.circle or "it closed the connection"
            except (OSError, TimeoutError, WebSocketException, TocsinError) as error:
                reason = tell_why(error)
            if reason != self._told:
                log.warning("no link to the head", url=self._head, reason=reason)
            self._told = reason
            await asyncio.sleep(self._backoff.after(loop.time() - began))

    async def _hold(self) -> None:
        async with dial(self._url, self._token, ca=self._ca, ping_seconds=_PING_SECONDS) as socket:
            broker = self._check(socket)
            outgoing = Outgoing(self._most)
            self._links.dialled, self._told = broker.name, ""
            self._links.opened(broker, outgoing)
            try:
                await until_one_ends(
                    self._listen(socket, broker, outgoing), outgoing.send_all(socket.send), outgoing.ended()
                )
                if outgoing.ending:
                    await socket.close(outgoing.ending.code, outgoing.ending.brief_reason)
            except ConnectionClosed as error:
                if error.rcvd and error.rcvd.code == CIRCLE:
                    outgoing.end(CIRCLE, error.rcvd.reason)
                raise
            except asyncio.CancelledError:
                await socket.close(GOING_AWAY, "the broker is going away")
                raise
            finally:
                self._links.lost(broker, outgoing, outgoing.ending.reason if outgoing.ending else "it ended")

    def _check(self, socket: ClientConnection) -> LinkedBroker:
        name = socket.response.headers.get(BROKER_HEADER, "") if socket.response else ""
        if not name:
            raise UnavailableError(f"{self._head} answers, but not as a head does")
        if self._expected and name != self._expected:
            raise UnavailableError(
                f"the head at {self._head} is now {name}, and was {self._expected}: start this edge again"
            )
        return LinkedBroker(name, "head", self._head)

    async def _listen(self, socket: ClientConnection, broker: LinkedBroker, outgoing: Outgoing) -> None:
        while True:
            await self._links.said(broker, outgoing, await socket.recv(decode=False))


def _decode(text: str | bytes) -> FromLink:
    try:
        return _MESSAGE.decode(text)
    except UNDECODABLE as error:
        raise undecodable(error, "message") from None


def _nonsense(message: FromLink) -> str:
    """Why a message makes no sense, empty if it does."""
    told = message.body if isinstance(message, Control) else message
    if isinstance(told, LocalLoad | ClusterLoad) and (told.state not in _STATES or not told.metrics.delay > 0):
        return f"a load message of {told.state!r} and a delay of {told.metrics.delay} makes no sense"
    if isinstance(told, SessionAccept) and not (told.load.bandwidth > 0 and told.load.memory_bytes > 0):
        return "a load without bandwidth or memory makes no sense"
    return ""
