"""The nodes' socket: who may have one, and what each says to the heads (:mod:`tocsin.data.sharing`).

A handshake is refused with 400 without a name, 401 without a known token, 403 with a wrong role, another node's or the
data cluster's own name, and 409 where slices are not shared. A connection is closed with 4400 for what makes no sense,
4403 for another node's name in it, 4401 once the token is revoked, 4409 when the head has given the node up or it has
come on another connection, 4429 when it does not read, 1003 for a binary message and 1009 for one that is too large.
It is told why before. Whatever a node does, other nodes keep their connections.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from tocsin.data.server.access import Access, Gate
from tocsin.data.server.cluster import DataCluster
from tocsin.data.server.sockets import TokenCheck, next_text
from tocsin.data.sharing import LOCAL, UNSHARED
from tocsin.data.sharing.incoming import IncomingMessages
from tocsin.data.sharing.outgoing import OutgoingMessages
from tocsin.data.sharing.wire import ConnectionRefused, ForNode, FromWorker
from tocsin.errors import (
    BusyError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    TooLargeError,
    UnauthorizedError,
)
from tocsin.http import failures
from tocsin.log import get_logger
from tocsin.model.messages import BrokerName
from tocsin.schema.refusals import UNDECODABLE, undecodable
from tocsin.tasks import until_one_ends

if TYPE_CHECKING:
    from tocsin.data.sharing.heads import Heads

log = get_logger(__name__)

MESSAGE_BYTES: Final = 1 << 20
"""A commit or a report of 4,096 slices, the most there can be, has about half of it."""
MOST_WAITING: Final = 10_000
"""So many messages may wait for a node before it is given up."""
_COST_BYTES: Final = 4096
_COSTS_A_SECOND: Final = 2000.0
_MOST_COSTS: Final = 4000.0
_TOO_LARGE: Final = 1009
_LAST_WORD_SECONDS: Final = 2.0
_MESSAGES: Final = msgspec.json.Decoder[FromWorker](FromWorker)


class NodeSocket:
    """Serves ``/nodes`` for one data cluster."""

    def __init__(self, cluster: DataCluster, gate: Gate) -> None:
        self._cluster, self._gate = cluster, gate

    async def endpoint(self, websocket: WebSocket) -> None:
        """One connection, from its handshake to its end."""
        try:
            node, heads = _node(websocket), self._heads()
            token = self._gate.token(websocket.headers.get("authorization"))
            if token is None:
                raise UnauthorizedError("no token: send the header 'Authorization: Bearer TOKEN'")
            allowed = TokenCheck(self._gate, Access.NODE, node)
            allowed.require(token)
        except Exception as error:
            await websocket.send_denial_response(failures.failure(error))
            return
        with suppress(WebSocketDisconnect):
            await websocket.accept()
            try:
                await until_one_ends(SocketOfNode(websocket, heads, node).hold(), allowed.watch(token))
            except WebSocketDisconnect:
                raise
            except Exception as error:
                await _refuse(websocket, node, error)

    def _heads(self) -> Heads:
        heads = self._cluster.heads
        if heads is None:
            raise ConflictError(UNSHARED)
        return heads


class SocketOfNode:
    """One node's connection. It is read no faster than the node may speak, and never waited for."""

    def __init__(self, websocket: WebSocket, heads: Heads, node: str) -> None:
        self.node = node
        self._websocket, self._heads = websocket, heads
        self._outgoing = OutgoingMessages(MOST_WAITING)
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def hold(self) -> None:
        """Talks until one side closes."""
        number = self._heads.connect(self)
        incoming = IncomingMessages(lambda said: self._heads.hear(number, said), self._give_up)
        log.info("node connected", node=self.node)
        try:
            await until_one_ends(self._read(incoming), self._write(), self._wait())
        finally:
            await incoming.stop()
            self._heads.disconnect(number)
            log.info("node disconnected", node=self.node)

    def send(self, message: ForNode) -> None:
        """Sends soon; who does not read is given up."""
        if not self._outgoing.put(message):
            self._give_up(BusyError(f"{self.node} does not read what it is told"))

    def close(self, reason: str) -> None:
        """Ends it, and says why."""
        self._give_up(ConflictError(reason))

    def _give_up(self, error: Exception) -> None:
        if not self._end.done():
            self._end.set_exception(error)

    async def _wait(self) -> None:
        await self._end

    async def _write(self) -> None:
        while True:
            message = await self._outgoing.take()
            await self._websocket.send_text(msgspec.json.encode(message).decode())

    async def _read(self, incoming: IncomingMessages) -> None:
        rate = SpeakingRate(asyncio.get_running_loop().time())
        while True:
            text = await next_text(self._websocket)
            if text is None:
                return
            await incoming.put(_decode(text))
            wait = rate.spend(asyncio.get_running_loop().time(), 1 + len(text) / _COST_BYTES)
            if wait:
                await asyncio.sleep(wait)


class SpeakingRate:
    """How much a node may say: so much a second, and some at once. Who says more is read later."""

    def __init__(self, now: float) -> None:
        self._at, self._left = now, _MOST_COSTS

    def spend(self, now: float, cost: float) -> float:
        """For how long to read nothing more."""
        self._left = min(self._left + (now - self._at) * _COSTS_A_SECOND, _MOST_COSTS) - cost
        self._at = now
        return max(-self._left / _COSTS_A_SECOND, 0.0)


def _decode(text: str) -> FromWorker:
    if len(text) > MESSAGE_BYTES:
        raise TooLargeError(f"a node's message has {len(text):,} characters: {MESSAGE_BYTES:,} are allowed")
    try:
        said: FromWorker = _MESSAGES.decode(text)
    except UNDECODABLE as error:
        raise undecodable(error, "message") from None
    return said


def _node(websocket: WebSocket) -> str:
    try:
        node = msgspec.convert(websocket.query_params.get("node", ""), BrokerName)
    except msgspec.ValidationError:
        raise InvalidError("name the node: /nodes?node=NAME, of letters, digits and . _ : -") from None
    if node == LOCAL:
        raise ForbiddenError(f"{LOCAL} is the name of the data cluster's own node: choose another with --name")
    return node


async def _refuse(websocket: WebSocket, node: str, error: Exception) -> None:
    """Tells why, and closes."""
    problem = failures.problem(error)
    log.warning("a node is refused", node=node, code=problem.code, reason=problem.message)
    told = ConnectionRefused(problem.code, problem.message)
    code = _TOO_LARGE if isinstance(error, TooLargeError) else 4000 + failures.status(error)
    # Who does not read is not waited for: the connection is cut when this returns.
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WORD_SECONDS):
            await websocket.send_text(msgspec.json.encode(told).decode())
            await websocket.close(code, problem.code)
