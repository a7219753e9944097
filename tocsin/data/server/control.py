"""The brokers' control socket: who may have one, and what drives the core of each (:mod:`tocsin.data.control`).

A connection is closed with 4000 plus the HTTP status when it may not be (4401 without a known token or once it is
revoked, 4403 with a wrong role or another broker's, 4404 for a broker nobody registered), with 1003 for a binary
message, 1009 for one that is too large and 1012 when the server stops. Any other message that makes no sense is
answered with an error, and the connection stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Final

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from tocsin.data.control import actions, events
from tocsin.data.control.core import ControlCore
from tocsin.data.control.pending import MOST_IDS
from tocsin.data.server.access import Access, Gate
from tocsin.data.server.cluster import DataCluster, Notices
from tocsin.data.server.sockets import UNSUPPORTED, TokenCheck, next_text
from tocsin.errors import InvalidError, UnauthorizedError, UnavailableError
from tocsin.http import failures
from tocsin.http.body import decode
from tocsin.log import get_logger
from tocsin.model import control
from tocsin.model.messages import BrokerName, Pulled
from tocsin.model.terms import Asker
from tocsin.tasks import until_one_ends

log = get_logger(__name__)

TOKEN_SECONDS: Final = 10.0
MOST_UNNAMED: Final = 16
# What is encoded in a thread, so that others are answered meanwhile.
_LARGE: Final = 64 << 10


class ControlSocket:
    """Serves ``/control`` for one data cluster."""

    def __init__(self, cluster: DataCluster, gate: Gate) -> None:
        self._cluster, self._gate = cluster, gate
        self._unnamed = 0

    async def endpoint(self, websocket: WebSocket) -> None:
        """One connection, from its handshake to its end."""
        try:
            broker = _broker(websocket)
            allowed = TokenCheck(self._gate, Access.BROKER, broker)
            token = self._gate.token(websocket.headers.get("authorization"))
            if token is not None:
                allowed.require(token)
            elif self._unnamed >= MOST_UNNAMED:
                raise UnavailableError("too many connections have not sent their token yet; send it with the handshake")
        except Exception as error:
            await websocket.send_denial_response(failures.failure(error))
            return
        with suppress(WebSocketDisconnect):
            await websocket.accept()
            try:
                if token is None:
                    token = await self._token(websocket)
                    allowed.require(token)
                driver = ControlDriver(websocket, self._cluster, broker)
                await until_one_ends(driver.hold(), allowed.watch(token))
            except WebSocketDisconnect:
                raise
            except Exception as error:
                await _refuse(websocket, error)

    async def _token(self, websocket: WebSocket) -> str:
        """The token in the first message. Only so many may be waited for, for anybody can connect without."""
        self._unnamed += 1
        try:
            return await _token(websocket)
        finally:
            self._unnamed -= 1


class ControlDriver:
    """Runs the core of one connection: gives it what happens, and does what it wants, in order.

    One task each reads, writes, collects notices and waits for the storage. A message is read only when the one before
    is answered, so a broker that asks for more waits in its own socket.
    """

    def __init__(self, websocket: WebSocket, cluster: DataCluster, broker: str) -> None:
        self._websocket, self._cluster, self._broker = websocket, cluster, broker
        self._core = ControlCore(broker, cluster, MOST_IDS)
        self._outgoing: asyncio.Queue[control.ControlMessage] = asyncio.Queue()
        self._wanted: asyncio.Queue[actions.CarryOut | actions.ReadOn] = asyncio.Queue()
        self._parts: AsyncGenerator[Pulled, None] | None = None
        self._idle = asyncio.Event()

    async def hold(self) -> None:
        """Talks until one side closes."""
        async with self._cluster.listen(self._broker) as notices:
            self._tell(events.Opened())
            log.info("broker connected", broker=self._broker)
            try:
                await until_one_ends(self._collect(notices), self._write(), self._read(), self._work())
            finally:
                await self._leave_pull()
                log.info("broker disconnected", broker=self._broker)

    def _tell(self, event: events.Event) -> None:
        for action in self._core.handle(event):
            match action:
                case actions.Send(message):
                    self._outgoing.put_nowait(message)
                case actions.CarryOut() | actions.ReadOn():
                    self._wanted.put_nowait(action)
                case actions.CompareHistories(channel, known):
                    self._cluster.compare(self._broker, channel, known)
        if self._core.idle:
            self._idle.set()
        else:
            self._idle.clear()

    async def _collect(self, notices: Notices) -> None:
        """Never waits for the broker, so what is waiting for it stays in the core's bounded space."""
        while True:
            self._tell(events.Noticed(await notices.get()))

    async def _write(self) -> None:
        while True:
            await self._send(await self._outgoing.get())
            self._tell(events.Writable())

    async def _read(self) -> None:
        while True:
            await self._idle.wait()
            text = await next_text(self._websocket)
            if text is None:
                return
            self._tell(events.Received(text))

    async def _work(self) -> None:
        while True:
            wanted = await self._wanted.get()
            try:
                outcome = await self._outcome(wanted)
            except Exception as error:
                outcome = events.RequestFailed(failures.problem(error))
            self._tell(outcome)

    async def _outcome(self, wanted: actions.CarryOut | actions.ReadOn) -> events.Outcome:
        if isinstance(wanted, actions.ReadOn):
            return await self._part()
        match wanted.request:
            case control.Attach() as request:
                return await self._subscribe(request)
            case control.Detach(bes=bes):
                return events.Unsubscribed(await self._cluster.unsubscribe(self._broker, bes))
            case control.Pull(_, channel, first, last, bes, most):
                await self._leave_pull()
                self._parts = self._cluster.pull(channel, first, last, bes, most, self._broker)
                return await self._part()

    async def _subscribe(self, request: control.Attach) -> events.Subscribed:
        asker = Asker(request.subscriber, request.groups) if request.subscriber else None
        made = await self._cluster.attach(self._broker, request.channel, request.parameters, asker)
        return events.Subscribed(made.channel.name, made.bes, made.parameters, made.rates, made.seconds)

    async def _part(self) -> events.PartRead:
        assert self._parts, "there is something to read on"
        return events.PartRead(await anext(self._parts))

    async def _leave_pull(self) -> None:
        """Whatever is not read of a pull is not wanted any more."""
        parts, self._parts = self._parts, None
        if parts:
            await parts.aclose()

    async def _send(self, message: control.ControlMessage) -> None:
        large = isinstance(message, control.Results) and sum(one.bytes for one in message.results) > _LARGE
        text = await asyncio.to_thread(_text_of, message) if large else _text_of(message)
        await self._websocket.send_text(text)


def _text_of(message: control.ControlMessage) -> str:
    return msgspec.json.encode(message).decode()


async def _refuse(websocket: WebSocket, error: Exception) -> None:
    """Tells why, and closes."""
    problem = failures.problem(error)
    await websocket.send_text(msgspec.json.encode(control.Error.of(problem)).decode())
    await websocket.close(4000 + failures.status(error), problem.code)


def _broker(websocket: WebSocket) -> str:
    try:
        return msgspec.convert(websocket.query_params.get("broker", ""), BrokerName)
    except msgspec.ValidationError:
        raise InvalidError("name the broker: /control?broker=NAME, of letters, digits and . _ : -") from None


async def _token(websocket: WebSocket) -> str:
    """The token in the first message, which must come soon."""
    try:
        async with asyncio.timeout(TOKEN_SECONDS):
            text = await next_text(websocket)
    except TimeoutError:
        raise UnauthorizedError(f"no token came within {TOKEN_SECONDS:g} seconds") from None
    if text is None:
        raise WebSocketDisconnect(UNSUPPORTED)
    try:
        return decode(text, control.Token).token
    except InvalidError:
        raise UnauthorizedError('send {"type": "token", "token": ...} first, or an Authorization header') from None
