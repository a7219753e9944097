"""Brokers, coordinator and a model of the data cluster for clients that speak over real sockets.

The cores are the real ones and talk with each other at once. Subscribers reach them as they would anywhere: the
coordinator by HTTP, the brokers by WebSocket. A test breaks what it wants to see broken.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import msgspec
from websockets.asyncio.connection import broadcast
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from tests.broker.world import DataCluster
from tests.serving import serving
from tocsin.balance.registry import placement, planner
from tocsin.balance.thresholds import Thresholds
from tocsin.broker import actions as broker_actions
from tocsin.broker import events as broker_events
from tocsin.broker.core import Broker
from tocsin.broker.holdings import Bearer
from tocsin.broker.limits import Limits
from tocsin.client.rules import Rules
from tocsin.coordinator import actions, answers, events
from tocsin.coordinator.core import Coordinator
from tocsin.coordinator.limits import Limits as CoordinatorLimits
from tocsin.coordinator.rounds import Planners
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.coordinator.tokens import Verifier
from tocsin.errors import NotFoundError, TocsinError
from tocsin.http.failures import problem
from tocsin.model import control
from tocsin.model.messages import Failure, Refusal
from tocsin.model.trust import Trust
from tocsin.simulate import inspection

QUICK = Rules(first_wait=0.02, longest_wait=0.1, ack_seconds=0.02, retry_seconds=0.02, renew_seconds=0.02)
NOWHERE = "Nowhere"
"""A channel that does not exist."""


@dataclass
class Node:
    """A broker."""

    name: str
    core: Broker
    link: int
    server: Server
    url: str
    verifier: Verifier = field(default_factory=lambda: Verifier(Trust()))
    sockets: dict[int, ServerConnection] = field(default_factory=dict)
    timer: asyncio.TimerHandle | None = None


class Town:
    """Everything, on the running loop; ``url`` is the coordinator's."""

    def __init__(self, *brokers: str, limits: Limits | None = None) -> None:
        self._names, self._limits = brokers, limits
        self.data = DataCluster()
        self.nodes: dict[str, Node] = {}
        self.published: list[bytes] = []
        self.stored = asyncio.Event()
        self.unpublishable: deque[broker_events.BatchFailed] = deque()
        self.logins: list[str] = []
        self.away = False
        self.mute: set[str] = set()
        self._store = MemoryStore()
        self._numbers = iter(range(1, 1_000_000_000))
        self._replies: dict[int, asyncio.Future[answers.Answer]] = {}
        self._waiting: deque[Callable[[], None]] = deque()
        self._busy = False
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[Any]] = set()
        planners = Planners(planner("migrate"), planner("shuffle"), Thresholds.product())
        # Nothing moves or dies by itself: what should, a test says.
        quiet = CoordinatorLimits(silence=1e9, interval=1e9, grace=0.05, returning=0.05)
        self._core = Coordinator(self._store.read(), time.time(), placement("round-robin"), planners, quiet)
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        port = await self._stack.enter_async_context(serving(self._call))
        self.url = f"http://127.0.0.1:{port}"
        for name in self._names:
            await self.start(name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self.nodes):
            self.kill(name)
        if self._timer:
            self._timer.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    async def start(self, name: str) -> None:
        """Starts a broker, with nothing in its memory."""

        async def served(socket: ServerConnection) -> None:
            await self._serve(node, socket)

        server = await serve(served, "127.0.0.1", 0, compression=None, ping_interval=None, close_timeout=1)
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        core = Broker(name, url, lambda token: self._bearer(name, token), limits=self._limits)
        node = self.nodes[name] = Node(name, core, next(self._numbers), server, url)
        self._tell_broker(node, broker_events.Connected("data"))
        self._tell_broker(node, broker_events.Connected("coordinator"))

    def kill(self, name: str) -> None:
        """Ends a broker as a crash does."""
        node = self.nodes.pop(name)
        node.server.close(close_connections=False)
        if node.timer:
            node.timer.cancel()
        for socket in node.sockets.values():
            socket.transport.abort()
        self._tell_coordinator(events.Lost(node.link))

    def cut(self) -> None:
        """Breaks all connections of subscribers."""
        for node in self.nodes.values():
            for socket in node.sockets.values():
                socket.transport.abort()

    def freeze(self) -> None:
        """Has all connections of subscribers stay open and fall silent."""
        for node in self.nodes.values():
            for socket in node.sockets.values():
                socket.transport.pause_reading()

    async def drain(self, name: str, on: bool = True) -> None:
        """Has a broker emptied."""
        await self._ask(lambda handle: events.Drain(handle, name, on))

    async def register(self, name: str) -> str:
        """A subscriber's token."""
        answer = await self._ask(lambda handle: events.RegisterUser(handle, name))
        assert isinstance(answer, answers.Registered)
        return answer.token

    def execute(self, channel: str, times: int = 1) -> None:
        """Runs a channel; it finds one row for everybody."""
        for _ in range(times):
            for name, notice in self.data.execute(channel, lambda be: True).items():
                if name in self.nodes:
                    self._tell_broker(self.nodes[name], broker_events.Told(notice))

    def restart_data(self, copy: dict[str, Any] | None = None) -> None:
        """Ends the data cluster, and starts it with its data, or as they are in a copy."""
        for node in self.nodes.values():
            self._tell_broker(node, broker_events.Lost("data"))
        if copy is not None:
            self.data.restore(copy)
        self.data.begin()
        for node in self.nodes.values():
            self._tell_broker(node, broker_events.Connected("data"))

    def drop(self, channel: str) -> None:
        """Drops a channel; brokers are told."""
        dropped = control.Dropped(channel, self.data.incarnation(channel))
        self.data.drop(channel)
        for node in self.nodes.values():
            self._tell_broker(node, broker_events.Told(dropped))

    def held(self, name: str) -> list[tuple[str, int]]:
        """What a subscriber holds by what the coordinator has stored: channels and numbers."""
        return [(held.channel, held.subscription) for held in inspection.held(self._core, name)]

    def where(self) -> list[str]:
        """The brokers that have connections."""
        return [node.name for node in self.nodes.values() if node.sockets]

    def _bearer(self, broker: str, token: str) -> Bearer:
        claims = self.nodes[broker].verifier.verify(token, time.time())
        self.logins.append(claims.name)
        return Bearer.of(claims, time.time())

    async def _serve(self, node: Node, socket: ServerConnection) -> None:
        session = next(self._numbers)
        node.sockets[session] = socket
        self._tell_broker(node, broker_events.Opened(session))
        try:
            while True:
                self._tell_broker(node, broker_events.Received(session, await socket.recv(decode=False)))
        except ConnectionClosed:
            node.sockets.pop(session, None)
            self._tell_broker(node, broker_events.Closed(session))

    def _do(self, work: Callable[[], None]) -> None:
        """Carries work out after what is under way, as messages on a link would come."""
        self._waiting.append(work)
        if self._busy:
            return
        self._busy = True
        try:
            while self._waiting:
                self._waiting.popleft()()
        finally:
            self._busy = False

    def _tell_broker(self, node: Node, event: broker_events.Event) -> None:
        def handle() -> None:
            if self.nodes.get(node.name) is not node:
                return
            for action in node.core.handle(asyncio.get_running_loop().time(), event):
                self._broker_did(node, action)
            if node.timer:
                node.timer.cancel()
            wake = node.core.wake()
            tick = broker_events.Tick()
            loop = asyncio.get_running_loop()
            node.timer = loop.call_at(wake, self._tell_broker, node, tick) if wake is not None else None

        self._do(handle)

    def _broker_did(self, node: Node, action: broker_actions.Action) -> None:
        match action:
            case broker_actions.Send(session, frame):
                self._send(node, [session], frame)
            case broker_actions.SendMany(sessions, frame):
                self._send(node, sessions, frame)
            case broker_actions.Close(session, code, reason) if session in node.sockets:
                self._spawn(node.sockets[session].close(code, reason))
            case broker_actions.ToData(message):
                self._tell_broker(node, broker_events.Told(self._answer(node.name, message)))
            case broker_actions.ToCoordinator(message):
                self._tell_coordinator(events.Received(node.link, message))
            case broker_actions.TrustLearned(trust):
                node.verifier = Verifier(trust)
            case broker_actions.PublishBatch(batch, _, shares):
                records = [bytes(record) for share in shares for record in share.records]
                self._tell_broker(node, self._publish(batch, records))

    def _send(self, node: Node, sessions: list[int], frame: bytes) -> None:
        present = [session for session in sessions if session in node.sockets]
        if node.name not in self.mute:
            broadcast([node.sockets[session] for session in present], frame.decode())
        for session in present:
            self._tell_broker(node, broker_events.Drained(session, 0))

    def _answer(self, broker: str, request: control.Request) -> Any:
        if isinstance(request, control.Attach) and request.channel == NOWHERE:
            return control.Error("not-found", f"there is no channel {NOWHERE}", request.id)
        return self.data.answer(broker, request)

    def _publish(self, batch: int, records: list[bytes]) -> broker_events.Event:
        """Takes what has an ``x``; a test may have it fail before."""
        if self.unpublishable:
            failed = self.unpublishable.popleft()
            return msgspec.structs.replace(failed, batch=batch)
        refused = [Refusal(index, "no x") for index, record in enumerate(records) if b'"x"' not in record]
        self.published += [record for record in records if b'"x"' in record]
        self.stored.set()
        return broker_events.BatchPublished(batch, refused)

    def _tell_coordinator(self, event: events.Event) -> None:
        def handle() -> None:
            for action in self._core.handle(time.time(), event):
                self._coordinator_did(action)
            if self._timer:
                self._timer.cancel()
            wake, loop = self._core.wake(), asyncio.get_running_loop()
            wait = max(0.0, wake - time.time()) if wake is not None else 0.0
            self._timer = loop.call_later(min(wait, 3600.0), self._tell_coordinator, events.Tick()) if wake else None

        self._do(handle)

    def _coordinator_did(self, action: actions.Action) -> None:
        match action:
            case actions.Send(link, message):
                for node in list(self.nodes.values()):
                    if node.link == link:
                        self._tell_broker(node, broker_events.Told(message))
            case actions.Store(batch, changes):
                self._store.write(changes)
                self._tell_coordinator(events.Stored(batch))
            case actions.Decide():
                self._tell_coordinator(action.run())
            case actions.Reply(handle, answer):
                reply = self._replies.pop(handle, None)
                if reply and not reply.done():
                    self._settle(reply, answer)

    def _settle(self, reply: asyncio.Future[answers.Answer], answer: answers.Answer | TocsinError) -> None:
        if isinstance(answer, TocsinError):
            reply.set_exception(answer)
        else:
            reply.set_result(answer)

    async def _ask(self, request: Callable[[int], events.Request]) -> answers.Answer:
        handle = next(self._numbers)
        reply: asyncio.Future[answers.Answer] = asyncio.get_running_loop().create_future()
        self._replies[handle] = reply
        self._tell_coordinator(request(handle))
        return await reply

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One HTTP call, and the end of its connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")), 0)
        body = await reader.readexactly(length)
        status, answer = await self._answer_call(head, body)
        if not self.away:
            content = msgspec.json.encode(answer)
            cors = "".join(f"Access-Control-Allow-{what}: *\r\n" for what in ("Origin", "Headers", "Methods"))
            lead = f"HTTP/1.1 {status} .\r\n{cors}Connection: close\r\nContent-Length: {len(content)}\r\n\r\n"
            writer.write(lead.encode() + content)

    async def _answer_call(self, head: str, body: bytes) -> tuple[int, Any]:
        method, target, _ = head.split("\r\n")[0].split(" ")
        token = next(
            (line[22:] for line in head.split("\r\n") if line.lower().startswith("authorization: bearer ")), ""
        )
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        try:
            match method, path:
                case "OPTIONS", _:
                    return 200, None
                case "POST", "/users":
                    name = msgspec.json.decode(body)["name"]
                    return 201, await self._ask(lambda handle: events.RegisterUser(handle, name, fresh=True))
                case "GET", "/broker":
                    place = (float(query["x"][0]), float(query["y"][0])) if query else None
                    return 200, await self._ask(lambda handle: events.RequestBroker(handle, token, place))
                case "DELETE", "/users/me":
                    return 200, await self._ask(lambda handle: events.Unregister(handle, token))
            raise NotFoundError(f"there is no call {method} {path}")
        except TocsinError as error:
            return error.status, Failure(problem(error))
