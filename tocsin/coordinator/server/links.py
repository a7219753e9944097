"""The brokers' connections: one WebSocket each, messages of :mod:`tocsin.model.coordination` both ways.

A handshake without a broker's token is refused with 401 or 403. A connection is closed with 1003 for a binary message,
1009 for one that is too large, 4400 after a message that makes no sense (``refused`` says why), 4401 when its token
ends or is withdrawn, 4403 for another broker's ``hello``, 4408 without any, 4429 when what is sent is not read, and
1012 when the server stops.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from math import inf
from typing import Final

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from tocsin.coordinator.events import Link, Lost, Received, SignOfLife
from tocsin.coordinator.server.access import Authenticator
from tocsin.coordinator.server.driver import CoordinatorDriver
from tocsin.coordinator.tokens import Claims
from tocsin.errors import ForbiddenError, InvalidError, TocsinError, UnauthorizedError
from tocsin.http import failures
from tocsin.log import get_logger
from tocsin.model.coordination import Beat, FromBroker, FromCoordinator, Hello, Keep, Refused
from tocsin.model.trust import Trust
from tocsin.schema.refusals import UNDECODABLE, undecodable
from tocsin.tasks import until_one_ends

log = get_logger(__name__)

HELLO_SECONDS: Final = 10.0
UNSUPPORTED: Final = 1003
UNREADABLE: Final = 4400
UNAUTHORIZED: Final = 4401
LATE: Final = 4408
UNREAD: Final = 4429
# How long a peer that does not read may take for the last words to it.
_CLOSE_SECONDS: Final = 2.0
_FOREVER: Final = 1e9

_MESSAGE: Final[msgspec.json.Decoder[FromBroker]] = msgspec.json.Decoder(FromBroker)


class BrokerLinks:
    """Serves ``/link``. ``most`` are the bytes that may wait for a broker that does not read."""

    def __init__(self, driver: CoordinatorDriver, gate: Authenticator, most: int) -> None:
        self._driver, self._gate, self._most = driver, gate, most
        self._open: set[BrokerConversation] = set()

    def learn(self, trust: Trust) -> None:
        """Ends the connections whose tokens are not taken any more."""
        for conversation in self._open:
            conversation.judge(trust)

    async def endpoint(self, websocket: WebSocket) -> None:
        """One connection, from its handshake to its end."""
        authorization = websocket.headers.get("authorization")
        try:
            claims = self._gate.require(authorization, "broker")
        except Exception as error:
            client = websocket.client.host if websocket.client else None
            log.warning("a broker is refused", reason=str(error), client=client)
            await websocket.send_denial_response(failures.failure(error))
            return
        known = None if self._gate.is_demo(self._gate.token(authorization)) else claims
        conversation = BrokerConversation(websocket, self._driver, known, self._most)
        self._open.add(conversation)
        try:
            with suppress(WebSocketDisconnect):
                await websocket.accept()
                await conversation.hold()
        finally:
            self._open.discard(conversation)


class BrokerConversation:
    """An open connection. ``claims`` are of the token it came with; None: that is anybody's.

    What can go wrong: the broker says what cannot be read or is another's to say, or does not read, or its token ends
    or is withdrawn. Then the connection is closed, and the core told that it is lost; a broker may come again at once.
    """

    def __init__(self, websocket: WebSocket, driver: CoordinatorDriver, claims: Claims | None, most: int) -> None:
        self._websocket, self._driver, self._claims, self._most = websocket, driver, claims, most
        self._outgoing: deque[str] = deque()
        self._size = 0
        self._something, self._closing = asyncio.Event(), False
        self._code, self._reason = UNREADABLE, ""
        self._name = ""

    def send(self, message: FromCoordinator) -> None:
        """Puts a message in line; too many of them end the connection."""
        if self._closing:
            return
        text = msgspec.json.encode(message).decode()
        self._outgoing.append(text)
        self._size += len(text)
        if self._size > self._most:
            self._outgoing.clear()
            self._end(UNREAD, "what is sent is not read")
        self._something.set()

    def close(self) -> None:
        """Ends the connection when what is in line is sent."""
        self._end(UNREADABLE, "closed by the coordinator")

    def judge(self, trust: Trust) -> None:
        """Ends the connection if its token is not taken any more."""
        if (its := self._claims) is None:
            return
        if fault := trust.fault(name=its.name, token=its.id, key=its.key, series=its.series):
            self._refuse(UNAUTHORIZED, UnauthorizedError(fault))

    async def hold(self) -> None:
        """Talks until one side closes."""
        link = self._driver.connect(self)
        try:
            await until_one_ends(self._read(link), self._write(), self._expire())
        except InvalidError as error:
            self._refuse(UNREADABLE, error)
        except ForbiddenError as error:
            self._refuse(4000 + error.status, error)
        finally:
            self._driver.disconnect(link)
            self._driver.tell(Lost(link))
            if self._name:
                log.info("broker disconnected", broker=self._name, reason=self._reason)
        await self._finish()

    async def _expire(self) -> None:
        """Ends the connection with its token."""
        name, expires = (self._claims.name, self._claims.expires) if self._claims else ("", inf)
        await asyncio.sleep(expires - self._driver.now if expires < inf else _FOREVER)
        error = f"the token of {name} has ended: make a new one with 'tocsin token sign {name} --role broker'"
        self._refuse(UNAUTHORIZED, UnauthorizedError(error))

    async def _read(self, link: Link) -> None:
        first: FromBroker | None
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                first = await self._message()
        except TimeoutError:
            self._end(LATE, f"no hello within {HELLO_SECONDS:g} seconds")
            return
        if first is None:
            return
        self._check_name(first)
        self._driver.tell(Received(link, first))
        while not self._closing and (message := await self._message()) is not None:
            self._check_name(message)
            self._driver.tell(SignOfLife(link) if isinstance(message, Beat) else Received(link, message))

    async def _message(self) -> FromBroker | None:
        """The next message; None when it is binary."""
        received = await self._websocket.receive()
        if received["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(received.get("code", 1005))
        text: str | None = received.get("text")
        if text is None:
            self._end(UNSUPPORTED, "messages are JSON text")
            return None
        try:
            message = _MESSAGE.decode(text)
        except UNDECODABLE as error:
            raise undecodable(error, "message") from None
        _check_texts(message)
        return message

    def _check_name(self, message: FromBroker) -> None:
        if not isinstance(message, Hello):
            return
        if self._claims is not None and message.broker != self._claims.name:
            raise ForbiddenError(
                f"{message.broker[:128]!r} came with the token of {self._claims.name}: make it one of its own with "
                f"'tocsin token sign {message.broker[:128]} --role broker', and set its broker.token"
            )
        if not self._name:
            self._name = message.broker
            log.info("broker connected", broker=message.broker, url=message.url)

    async def _write(self) -> None:
        while not (self._closing and not self._outgoing):
            await self._something.wait()
            self._something.clear()
            await self._flush()

    async def _flush(self) -> None:
        while self._outgoing:
            text = self._outgoing.popleft()
            await self._websocket.send_text(text)
            self._size -= len(text)

    def _end(self, code: int, reason: str, last: Refused | None = None) -> None:
        if self._closing:
            return
        if last is not None:
            self._outgoing.append(msgspec.json.encode(last).decode())
            reason = last.message
        self._closing, self._code, self._reason = True, code, reason
        self._something.set()

    def _refuse(self, code: int, error: TocsinError) -> None:
        log.warning(
            "a broker is refused", broker=self._name, token_of=self._claims and self._claims.name, reason=str(error)
        )
        self._end(code, "", Refused(error.code, str(error)))

    async def _finish(self) -> None:
        """The last words, to whoever reads them."""
        with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._flush()
                # A close frame takes 123 bytes of reason.
                reason = self._reason.encode()[:120].decode(errors="ignore")
                await self._websocket.close(self._code, reason)


def _check_texts(message: FromBroker) -> None:
    """Refuses what no database stores."""
    texts: tuple[str, ...] = ()
    if isinstance(message, Hello):
        texts = (message.broker, message.url, *(stay.subscriber for stay in message.serving))
    elif isinstance(message, Keep):
        texts = (message.held.channel,)
    if any("\0" in text for text in texts):
        raise InvalidError("the message has a text with the character U+0000 in it")
