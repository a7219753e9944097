"""The cores of a network, and what they say to each other: at once, in the order in which it was said."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from websockets.asyncio.connection import broadcast
from websockets.asyncio.server import Server, ServerConnection
from websockets.exceptions import ConnectionClosed

from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.policies import placement, planner
from tocsin.broker import actions as broker_actions
from tocsin.broker import events as broker_events
from tocsin.broker.core import BrokerCore
from tocsin.broker.holdings import Bearer
from tocsin.coordinator import actions, answers, events
from tocsin.coordinator.balancing import Planners
from tocsin.coordinator.core import CoordinatorCore
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.coordinator.tokens import Verifier
from tocsin.errors import TocsinError
from tocsin.model import control
from tocsin.model.messages import Refusal
from tocsin.model.trust import Trust
from tocsin.testing.scripted import ScriptedData

NOWHERE: Final = "Nowhere"
"""The only channel that does not exist."""


@dataclass
class Node:
    """A broker."""

    name: str
    core: BrokerCore
    link: int
    server: Server
    url: str
    verifier: Verifier = field(default_factory=lambda: Verifier(Trust()))
    sockets: dict[int, ServerConnection] = field(default_factory=dict)
    timer: asyncio.TimerHandle | None = None


class Wires:
    """Brokers by name, each with its connections, the coordinator, and the data cluster.

    ``published`` is what was published, ``refuse`` says why a record is refused, or nothing, and what is in
    ``unpublishable`` is what becomes of the next batches instead. The brokers in ``mute`` say nothing to subscribers.
    ``logins`` are all of them, ``stored`` is set when something was published.
    """

    def __init__(self) -> None:
        self.data = ScriptedData()
        self.nodes: dict[str, Node] = {}
        self.published: list[bytes] = []
        self.stored = asyncio.Event()
        self.unpublishable: deque[broker_events.BatchFailed] = deque()
        self.logins: list[str] = []
        self.mute: set[str] = set()
        self.refuse: Callable[[bytes], str] = lambda _: ""
        self._store = MemoryStore()
        self._numbers = iter(range(1, 1_000_000_000))
        self._replies: dict[int, asyncio.Future[answers.Answer]] = {}
        self._waiting: deque[Callable[[], None]] = deque()
        self._busy = False
        self._tasks: set[asyncio.Task[Any]] = set()
        planners = Planners(planner("migrate"), planner("shuffle"), Thresholds.product())
        # Nothing moves or dies by itself: what should, a test says.
        quiet = CoordinatorLimits(silence=1e9, interval=1e9, grace=0.05, returning=0.05)
        self._core = CoordinatorCore(self._store.read(), time.time(), placement("round-robin"), planners, quiet)
        self._timer: asyncio.TimerHandle | None = None

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
            self._tell_broker(node, broker_events.Flushed(session, 0))

    def _answer(self, broker: str, request: control.Request) -> Any:
        if isinstance(request, control.Attach) and request.channel == NOWHERE:
            return control.Error("not-found", f"there is no channel {NOWHERE}", request.id)
        return self.data.answer(broker, request)

    def _publish(self, batch: int, records: list[bytes]) -> broker_events.Event:
        """Takes what is not refused; a test may have it fail before."""
        if self.unpublishable:
            failed = self.unpublishable.popleft()
            return msgspec.structs.replace(failed, batch=batch)
        reasons = [self.refuse(record) for record in records]
        refused = [Refusal(index, reason) for index, reason in enumerate(reasons) if reason]
        self.published += [record for record, reason in zip(records, reasons, strict=True) if not reason]
        self.stored.set()
        return broker_events.BatchPublished(batch, refused)

    def _tell_coordinator(self, event: events.Event) -> None:
        def handle() -> None:
            for action in self._core.handle(time.time(), event):
                self._coordinator_did(action)
            if self._timer:
                self._timer.cancel()
            wait = max(0.0, self._core.wake() - time.time())
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(wait, 3600.0), self._tell_coordinator, events.Tick())

        self._do(handle)

    def _coordinator_did(self, action: actions.Action) -> None:
        match action:
            case actions.Send(link, message):
                for node in list(self.nodes.values()):
                    if node.link == link:
                        self._tell_broker(node, broker_events.Told(message))
            case actions.StoreBatch(batch, changes):
                self._store.write(changes)
                self._tell_coordinator(events.BatchStored(batch))
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
