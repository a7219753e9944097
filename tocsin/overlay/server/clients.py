"""The connections of publishers and subscribers: one WebSocket each, messages of :mod:`tocsin.overlay.dialogue`.

A handshake without a token that is taken is refused with 401 or 403, one too many with 503. A connection is closed with
1009 for a message that is too large, 4400 after one that makes no sense (``Refused`` says why), 4401 when its token has
expired, 4429 when what is sent is not read or too much is said.
"""

from __future__ import annotations

import asyncio
import re
import time
from base64 import urlsafe_b64decode
from contextlib import suppress
from math import inf
from typing import Final

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from tocsin.errors import InvalidError, TocsinError, UnavailableError
from tocsin.http import failures
from tocsin.model.terms import SubscriberName
from tocsin.overlay.dialogue import Introduce, Publish, Refused, Subscribe, ToEdge, ToHead, Unsubscribe
from tocsin.overlay.head import Head
from tocsin.overlay.server.access import ClientIdentity, OverlayAccess
from tocsin.overlay.server.driver import OverlayDriver
from tocsin.overlay.server.outgoing import EXPIRED, UNREAD, UNREADABLE, Outgoing, encode
from tocsin.overlay.server.rates import PublishingRates, TokenBucket
from tocsin.overlay.server.sharing import Bearers, FairOutput, Send
from tocsin.overlay.server.websocket import finish, receive
from tocsin.overlay.server.writer import LogWriter
from tocsin.schema.refusals import UNDECODABLE, undecodable
from tocsin.settings.overlay import NAME, OverlaySettings
from tocsin.tasks import until_one_ends

PROTOCOL: Final = "tocsin"
"""What is chosen of the protocols that a page offers, so that the token among them is not sent back."""
MOST_CURSORS: Final = 200
LARGEST: Final = 2**62
LONGEST_INCARNATION: Final = 64
LONGEST_NAME: Final = 128
# How often it is looked whether a token has expired.
LOOK_SECONDS: Final = 60.0
# Messages that a subscriber may send at once, and in a second for long; it has hardly anything to say.
BURST: Final = 30.0
PER_SECOND: Final = 3.0
_MESSAGE: Final[msgspec.json.Decoder[ToEdge | ToHead]] = msgspec.json.Decoder(ToEdge | ToHead)


class OverlayClients:
    """Serves ``/client``. ``writer`` is a head's."""

    def __init__(
        self, driver: OverlayDriver, access: OverlayAccess, settings: OverlaySettings, writer: LogWriter | None
    ) -> None:
        self._driver, self._access, self._settings, self._writer = driver, access, settings, writer
        self._rates = PublishingRates(settings.publish_rate, settings.publish_bytes)
        self._connections, self._bearers = 0, Bearers(settings)
        # A head sends its clients next to nothing.
        self._output = FairOutput(inf if writer else settings.bandwidth, self._bearers)

    async def endpoint(self, socket: WebSocket) -> None:
        """One connection, from its handshake to its end."""
        try:
            identity = self._access.require_client(_authorization(socket))
            self._check_room(identity)
        except TocsinError as error:
            await socket.send_denial_response(failures.failure(error))
            return
        # From before the handshake is answered, in which others may come.
        self._connections += 1
        outgoing = Outgoing(self._settings.waiting_bytes, self._bearers.open(identity.name))
        send = self._output.paced(identity.name, socket.send_text)
        try:
            with suppress(WebSocketDisconnect):
                await socket.accept(PROTOCOL if PROTOCOL in socket.scope["subprotocols"] else None)
                await self._hold(socket, identity, outgoing, send)
                await finish(socket, outgoing, send)
        finally:
            outgoing.closed()
            self._connections -= 1
            self._bearers.close(identity.name)

    def _check_room(self, identity: ClientIdentity) -> None:
        settings = self._settings
        if self._connections >= settings.connections:
            raise UnavailableError(
                f"overlay.connections = {settings.connections} clients are connected, and no more are taken"
            )
        if identity.name and self._bearers.connections(identity.name) >= settings.connections_each:
            raise UnavailableError(
                f"{identity.name} has overlay.connections_each = {settings.connections_each} connections here, one for "
                "each subscription or publisher: end one of these first, or go to another broker"
            )

    async def _hold(self, socket: WebSocket, identity: ClientIdentity, outgoing: Outgoing, send: Send) -> None:
        client = self._driver.open_client(outgoing)
        try:
            reading = self._read(socket, identity, client, outgoing)
            sending, expiring = outgoing.send_all(send), _expire(identity, outgoing)
            await until_one_ends(reading, sending, expiring, outgoing.ended())
        except InvalidError as error:
            outgoing.put(encode(Refused(str(error))).decode())
            outgoing.end(UNREADABLE, str(error))
        finally:
            with self._bearers.time_of(identity.name, self._driver.now).spend():
                self._driver.lose_client(client)

    async def _read(self, socket: WebSocket, identity: ClientIdentity, client: int, outgoing: Outgoing) -> None:
        driver = self._driver
        others, rate = TokenBucket(PER_SECOND, BURST, driver.now), self._rates.of(identity.name, driver.now)
        while True:
            text = await receive(socket)
            message = self._check(identity, _decode(text))
            if isinstance(message, Publish):
                # While it waits nothing more is read, so that the publisher waits, too.
                if seconds := rate.take(len(text), driver.now):
                    await asyncio.sleep(seconds)
                if self._writer:
                    await self._writer.room()
                driver.hear_client(client, message)
            else:
                if others.take(1, driver.now):
                    outgoing.end(UNREAD, "too many messages in too short a time")
                    return
                await self._bearers.speak(identity.name, driver.now)
                async with self._bearers.time_of(identity.name, driver.now).turn():
                    driver.hear_client(client, message)

    def _check(self, identity: ClientIdentity, message: ToEdge | ToHead) -> ToEdge | ToHead:
        """The message, if it can be taken here."""
        core = self._driver.core
        match message:
            case Subscribe(name) | Introduce(name):
                identity.check(name)
        if isinstance(core, Head):
            if isinstance(message, Subscribe | Unsubscribe):
                raise InvalidError(f"{core.name} is a head, which takes publications: subscribe at one of its edges")
            if isinstance(message, Introduce):
                self._check_publisher(core, identity, message.publisher)
        elif isinstance(message, Introduce | Publish):
            raise InvalidError(
                f"{core.name} is an edge, which serves subscribers: publish to a head, such as {self._settings.head}"
            )
        return message

    def _check_publisher(self, head: Head, identity: ClientIdentity, publisher: str) -> None:
        limits, log = self._settings.limits, head.log
        if log.knows(publisher):
            return
        after = f"after overlay.publisher_seconds = {limits.publisher_seconds:g} without one it is forgotten"
        if log.publishers >= limits.publishers:
            raise InvalidError(
                f"{head.name} knows overlay.publishers = {limits.publishers} publishers, and takes no more: {after}"
            )
        if identity.name and log.publishers_of(identity.name) >= limits.publishers_each:
            raise InvalidError(
                f"{identity.name} has published under {limits.publishers_each} names, and {head.name} takes no more of "
                f"them: publish under one of these again, or wait; {after}"
            )


def _authorization(socket: WebSocket) -> str | None:
    """As the header has it; pages cannot set that, and offer the token as a protocol, ``bearer.`` and base64url."""
    for offered in socket.scope["subprotocols"]:
        scheme, _, token = str(offered).partition(".")
        if scheme == "bearer":
            with suppress(ValueError):
                return f"Bearer {urlsafe_b64decode(token + '=' * (-len(token) % 4)).decode()}"
    return socket.headers.get("authorization")


def _decode(text: str) -> ToEdge | ToHead:
    try:
        message = _MESSAGE.decode(text)
    except UNDECODABLE as error:
        raise undecodable(error, "message") from None
    match message:
        case Subscribe(name, _, cursors):
            _check_name(name)
            if len(cursors) > MOST_CURSORS or not all(0 <= each.offset < LARGEST for each in cursors.values()):
                raise InvalidError(f"cursors are offsets of heads, from 0 on, and {MOST_CURSORS} at most")
            if not all(re.fullmatch(NAME, head) for head in cursors):
                raise InvalidError("cursors are by the names of heads: up to 128 letters, digits and . _ : -")
            if any(len(each.incarnation) > LONGEST_INCARNATION for each in cursors.values()):
                raise InvalidError(f"no incarnation of a log has more than {LONGEST_INCARNATION} letters")
        case Introduce(name):
            _check_name(name)
        case Publish(sequence):
            if not 0 < sequence < LARGEST:
                raise InvalidError(f"{sequence} is no number of a publication: they begin with 1")
    return message


async def _expire(identity: ClientIdentity, outgoing: Outgoing) -> None:
    """Ends the connection when its token does, by the clock on the wall, which may be set meanwhile."""
    while True:
        left = identity.expires - time.time()
        if left <= 0:
            outgoing.end(EXPIRED, f"the token of {identity.name} is no longer valid")
            return
        await asyncio.sleep(min(left, LOOK_SECONDS))


def _check_name(name: str) -> None:
    try:
        for part in name.split("+"):
            msgspec.convert(part, SubscriberName)
        if len(name) > LONGEST_NAME:
            raise msgspec.ValidationError
    except msgspec.ValidationError:
        raise InvalidError(
            f"{name[:128]!r} is no name: up to 128 letters, digits and . _ : @ -, first a letter or digit, and "
            "the same again after each +"
        ) from None
