"""The brokers' control socket: notices go out, subscriptions and pulls come in.

A connection is closed with 4000 plus the HTTP status when it may not be (4401 without a known token or once it is
revoked, 4403 with a wrong role or another broker's, 4404 for a broker nobody registered), with 1003 for a binary
message, 1009 for one that is too large and 1012 when the server stops. Any other message that makes no sense is
answered with an error, and the connection stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Final

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from tocsin.data.attachment import Attachment
from tocsin.data.server.access import Access, Gate
from tocsin.data.server.cluster import DataCluster, Notices
from tocsin.data.server.pending import Pending
from tocsin.errors import BusyError, InvalidError, StorageError, UnauthorizedError, UnavailableError
from tocsin.http import failures
from tocsin.http.body import UNDECODABLE, decoded, undecodable
from tocsin.log import get_logger
from tocsin.model import control
from tocsin.model.messages import BrokerName
from tocsin.model.terms import Asker
from tocsin.tasks import until_one_ends

log = get_logger(__name__)

TOKEN_SECONDS: Final = 10.0
MOST_UNNAMED: Final = 16
WATCH_SECONDS: Final = 1.0
UNSUPPORTED: Final = 1003
# What is encoded in a thread, so that others are answered meanwhile.
_LARGE: Final = 64 << 10

_REQUEST: Final[msgspec.json.Decoder[control.Request]] = msgspec.json.Decoder(control.Request)


class _OnlyId(msgspec.Struct):
    id: int | None = None


class Control:
    """Serves ``/control`` for one data cluster."""

    def __init__(self, cluster: DataCluster, gate: Gate) -> None:
        self._cluster, self._gate = cluster, gate
        self._unnamed = 0

    async def endpoint(self, websocket: WebSocket) -> None:
        """One connection, from its handshake to its end."""
        try:
            broker = _broker(websocket)
            token = self._gate.token(websocket.headers.get("authorization"))
            if token is not None:
                self._check(token, broker)
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
                    self._check(token, broker)
                conversation = Conversation(websocket, self._cluster, broker)
                await until_one_ends(conversation.hold(), self._watch(token, broker))
            except WebSocketDisconnect:
                raise
            except Exception as error:
                await _refuse(websocket, error)

    def _check(self, token: str, broker: str) -> None:
        """Refuses a token that is not the broker's, nor an admin's."""
        caller = self._gate.holder(token)
        caller.require(Access.BROKER)
        caller.require_name(broker)

    async def _watch(self, token: str, broker: str) -> None:
        """Ends when the token is revoked, with the reason."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            # While the store cannot be read, what it said last counts.
            with suppress(StorageError, BusyError):
                await asyncio.to_thread(self._check, token, broker)

    async def _token(self, websocket: WebSocket) -> str:
        """The token in the first message. Only so many may be waited for, for anybody can connect without."""
        self._unnamed += 1
        try:
            return await _token(websocket)
        finally:
            self._unnamed -= 1


class Conversation:
    """An open connection: one task forwards notices, one collects them, and the caller's answers requests in turn."""

    def __init__(self, websocket: WebSocket, cluster: DataCluster, broker: str) -> None:
        self._websocket, self._cluster, self._broker = websocket, cluster, broker
        self._pending = Pending()
        self._something = asyncio.Event()

    async def hold(self) -> None:
        """Talks until one side closes."""
        async with self._cluster.listen(self._broker) as notices:
            await self._send(control.Welcome(self._broker))
            log.info("broker connected", broker=self._broker)
            try:
                await until_one_ends(self._collect(notices), self._forward(), self._answer())
            finally:
                log.info("broker disconnected", broker=self._broker)

    async def _collect(self, notices: Notices) -> None:
        """Never waits for the broker, so what is waiting for it stays in bounded space."""
        while True:
            self._pending.add(await notices.get())
            self._something.set()

    async def _forward(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            while notice := self._pending.take():
                await self._send(notice)

    async def _answer(self) -> None:
        while True:
            text = await _text(self._websocket)
            if text is None:
                return
            async with aclosing(self._replies(text)) as answers:
                async for answer in answers:
                    await self._send(answer)

    async def _replies(self, text: str) -> AsyncGenerator[control.Message, None]:
        """The answer to one message, whatever it is; that to a pull comes in parts, each read when the one before was
        taken."""
        try:
            request = _REQUEST.decode(text)
            if isinstance(request, control.Pull):
                async with aclosing(self._pull(request)) as parts:
                    async for part in parts:
                        yield part
            else:
                yield await self._act(request)
        except UNDECODABLE as error:
            yield control.Error.of(failures.problem(undecodable(error, "message")), _id(text))
        except Exception as error:
            yield control.Error.of(failures.problem(error), _id(text))

    async def _pull(self, request: control.Pull) -> AsyncGenerator[control.Results, None]:
        incarnation = await self._cluster.incarnation(request.channel)
        pulled = self._cluster.pull(
            request.channel, request.first, request.last, request.bes, request.most, self._broker
        )
        async for part in pulled:
            yield control.Results(request.id, part.results, incarnation, part.more, part.upto, part.oldest, part.gone)

    async def _act(self, request: control.Attach | control.Detach | control.Ping) -> control.Message:
        match request:
            case control.Attach():
                return await self._attach(request)
            case control.Detach(id=id, bes=bes):
                return control.Detached(id, await self._cluster.unsubscribe(self._broker, bes))
            case control.Ping(id=id):
                return control.Pong(id)

    async def _attach(self, request: control.Attach) -> control.Attached:
        asker = Asker(request.subscriber, request.groups) if request.subscriber else None
        attachment = await self._cluster.attach(self._broker, request.channel, request.parameters, asker)
        if request.known is not None:
            self._cluster.compare(self._broker, attachment.channel.name, request.known)
        return _attached(request.id, attachment)

    async def _send(self, message: control.Message) -> None:
        large = isinstance(message, control.Results) and sum(one.bytes for one in message.results) > _LARGE
        text = await asyncio.to_thread(_text_of, message) if large else _text_of(message)
        await self._websocket.send_text(text)


def _text_of(message: control.Message) -> str:
    return msgspec.json.encode(message).decode()


def _attached(id: int, attachment: Attachment) -> control.Attached:
    return control.Attached(
        id,
        attachment.bes,
        attachment.execution,
        attachment.channel.terms,
        channel=attachment.channel.name,
        parameters=attachment.parameters,
        history=attachment.history,
        rates=attachment.rates,
        seconds=attachment.seconds,
    )


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
            text = await _text(websocket)
    except TimeoutError:
        raise UnauthorizedError(f"no token came within {TOKEN_SECONDS:g} seconds") from None
    if text is None:
        raise WebSocketDisconnect(UNSUPPORTED)
    try:
        return decoded(text, control.Token).token
    except InvalidError:
        raise UnauthorizedError('send {"type": "token", "token": ...} first, or an Authorization header') from None


async def _text(websocket: WebSocket) -> str | None:
    """The next message; None when it is binary, and the connection therefore closed."""
    message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    text: str | None = message.get("text")
    if text is None:
        await websocket.close(UNSUPPORTED, "messages are JSON text")
    return text


def _id(text: str) -> int | None:
    """The id of a message that may be wrong in every other way."""
    try:
        return msgspec.json.decode(text, type=_OnlyId).id
    except UNDECODABLE:
        return None
