"""All heads of a data cluster: one for each feed that is shared, and the nodes that are connected to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import msgspec

from tocsin.data.nodes.channels import MatchingLimits, NodeChannel
from tocsin.data.nodes.sharing import SharedFeed
from tocsin.data.sharing import LOCAL
from tocsin.data.sharing.figures import failing, feed_slices
from tocsin.data.sharing.gauge import ProcessGauge
from tocsin.data.sharing.head import CommitStorage, HeadDriver
from tocsin.data.sharing.local import LocalNode, NodeConnection
from tocsin.data.sharing.node import SliceWork
from tocsin.data.sharing.wire import (
    REASON,
    FeedBegun,
    FeedChannel,
    FeedChannelEnded,
    FeedDeclined,
    FeedEnded,
    FromWorker,
    NodeWelcome,
    ToNode,
)
from tocsin.errors import InvalidError, NotFoundError
from tocsin.log import get_logger
from tocsin.model import names
from tocsin.model.slices import FeedSlices, NodesNeeded
from tocsin.settings import NodesSettings
from tocsin.slices import events
from tocsin.slices.balancing import SlicePlanners
from tocsin.slices.elasticity import Elasticity
from tocsin.slices.head import HeadCore
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import FromHead

log = get_logger(__name__)

_AGAIN_SECONDS: Final = 30.0
_FUNCTION_TIMES: Final = 8


@dataclass(frozen=True)
class FeedToShare:
    """A feed that is to be shared.

    Args:
        committed: called from a thread after each commit.
        work: makes what processes slices here; where nobody does, it is not called.
        measured: whether Spark runs in processes of this one's, so that their gauge tells how busy the node is.
    """

    shared: SharedFeed
    store: CommitStorage
    committed: Callable[[], None]
    work: Callable[[], SliceWork]
    measured: bool = True

    @property
    def name(self) -> str:
        """The feed's."""
        return self.shared.feed.name


class Heads:
    """The heads by their feeds. On the event loop, but for :meth:`begin` and :meth:`end`, which other threads call.

    Args:
        term: of this data cluster; no other has it, and those before had lower ones.
        batch_seconds: from the beginning of a node's batch to that of the next, at least.
        planners: what balances; the product's own unless given.
        matching: how much nodes do for channels.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        settings: NodesSettings,
        term: int,
        batch_seconds: float = 0.05,
        planners: SlicePlanners | None = None,
        matching: MatchingLimits = MatchingLimits(),  # noqa: B008
    ) -> None:
        self._loop, self._settings, self._term = loop, settings, term
        self._limits = limits_of(settings, batch_seconds)
        self._planners, self.matching = planners, matching
        self._heads: dict[str, HeadDriver] = {}
        self._locals: dict[str, LocalNode] = {}
        self._trying: dict[str, asyncio.Task[None]] = {}
        self._connections: dict[int, NodeConnection] = {}
        self._numbers = count(1)
        self._drained: dict[str, None] = {}
        # By the dataset that they look for news in, and their names.
        self._channels: dict[str, dict[str, NodeChannel]] = {}
        self._gauge = ProcessGauge()
        self._elasticity = Elasticity(seconds=settings.elastic_seconds, keep=(LOCAL,))
        self._spare = ""
        # Who is not needed and is to be empty, while it is connected.
        self._leaving: dict[str, None] = {}
        self._rounds: asyncio.TimerHandle | None = None

    @property
    def is_automatic(self) -> bool:
        """Whether nobody has said that slices are to be shared, but executors are there for them."""
        return self._settings.share == "auto"

    @property
    def needed(self) -> NodesNeeded:
        """Whether there are too many nodes, or too few. From any thread."""
        return NodesNeeded(self._settings.elastic, self._elasticity.wanted, self._spare, list(self._leaving))

    @property
    def drained(self) -> list[str]:
        """Whom an operator wants to be empty."""
        return list(self._drained)

    def begin(self, feed: FeedToShare) -> None:
        """Shares a feed from now on."""
        core = HeadCore(self._term, feed.store.markers(), self._planners, patient_limits(self._limits, feed.shared))
        work: SliceWork | str = ""
        if self._settings.local:
            work = _make(feed)
        self._wait(self._begin(feed, core, work))

    def end(self, feed: str) -> None:
        """Shares a feed no more; nothing is stored any more when this returns."""
        self._wait(self._end(feed))

    def problem(self, feed: str) -> str:
        """Why a feed does not get on, in a sentence for operators; empty if it does. From any thread."""
        head, local = self._heads.get(feed), self._locals.get(feed)
        if head is None:
            return ""
        if not any(member.takes for member in list(head.core.registry)) and head.core.ownership.free():
            return (
                f"feed {feed}: there is no processing node for its slices; start one with 'tocsin worker', or let the "
                f"data cluster be one again (nodes.local = true, 'tocsin slices undrain {LOCAL}')"
                + "".join(f"; {node} cannot: {reason}" for node, reason in list(head.declined.items())[:3])
            )
        own = (local.problem if local else "") or failing(head.core)
        return head.problem or (f"feed {feed}: {own}" if own else "") or head.blind

    def connect(self, connection: NodeConnection) -> int:
        """A node has come, and is told which feeds are shared; the number by which it is known."""
        connection.send(NodeWelcome(connection.node, list(self._heads)))
        for head in self._heads.values():
            self._introduce(head, connection)
        return self.register(connection)

    def datasets(self) -> set[str]:
        """Those that nodes fill. From any thread."""
        return {head.shared.dataset.name for head in list(self._heads.values())}

    def tell(self, dataset: str, channel: NodeChannel) -> None:
        """Nodes match a channel with what they read for a dataset. From any thread."""
        self._loop.call_soon_threadsafe(self._tell, dataset, channel)

    def withdraw(self, dataset: str, channel: str) -> None:
        """Nodes do not match it any more. From any thread."""
        self._loop.call_soon_threadsafe(self._withdraw, dataset, channel)

    def register(self, connection: NodeConnection) -> int:
        """Gives a connection its number."""
        number = next(self._numbers)
        self._connections[number] = connection
        return number

    def disconnect(self, number: int) -> None:
        """A connection is over."""
        gone = self._connections.pop(number, None)
        if gone is not None:
            self._leaving.pop(gone.node, None)
            for head in list(self._heads.values()):
                head.tell(events.NodeLost(number))
                if not isinstance(gone, LocalNode):
                    head.declined.pop(gone.node, None)

    async def hear(self, number: int, said: FromWorker) -> None:
        """A node says something about a feed, which may be no more. Raises TocsinError if it makes no sense."""
        head, connection = self._heads.get(said.feed), self._connections.get(number)
        if head is None or head.incarnation != said.incarnation or connection is None:
            return
        if isinstance(said, FeedDeclined):
            head.decline(connection.node, said.reason)
        else:
            await head.hear(number, connection.node, said.message)

    def drain(self, node: str, on: bool) -> None:
        """Has a node emptied, or lets it have slices again; NotFoundError if nobody knows it."""
        known = {member.name for head in self._heads.values() for member in head.core.registry}
        known |= self._drained.keys() | {connection.node for connection in self._connections.values()}
        if node not in known:
            raise NotFoundError(
                f"there is no processing node {node}{names.suggestion(node, sorted(known))}; 'tocsin slices' shows them"
            )
        if on:
            self._drained[node] = None
        else:
            self._drained.pop(node, None)
            self._leaving.pop(node, None)
        for head in self._heads.values():
            head.tell(events.Drain(node, on))
        for local in self._locals.values() if node == LOCAL and not on else ():
            local.come_back()

    def slices(self, feed: str) -> FeedSlices | None:
        """Who owns what of a feed; None if it is not shared."""
        head = self._heads.get(feed)
        return feed_slices(feed, head.shared.dataset.name, self._term, head.core, head.declined) if head else None

    async def _begin(self, feed: FeedToShare, core: HeadCore, work: SliceWork | str) -> None:
        def send(number: int, message: FromHead) -> None:
            if connection := self._connections.get(number):
                connection.send(ToNode(feed.name, incarnation, message))

        incarnation = f"{self._term}.{next(self._numbers)}"
        head = HeadDriver(feed.shared, incarnation, core, feed.store, feed.committed, send, self._close)
        self._heads[feed.name] = head
        head.tell(events.Tick())
        if self._rounds is None:
            self._look_soon()
        for node in self._drained:
            head.tell(events.Drain(node))
        for connection in list(self._connections.values()):
            self._introduce(head, connection)
        if not isinstance(work, str):
            self._begin_local(feed, head, work)
        elif work:
            head.decline(LOCAL, work)
            self._trying[feed.name] = asyncio.create_task(self._try_local(feed, head))

    def _begin_local(self, feed: FeedToShare, head: HeadDriver, work: SliceWork) -> None:
        head.declined.pop(LOCAL, None)
        usage = self._gauge.look if feed.measured else lambda: None
        capacity = self._settings.capacity or self._gauge.processors
        self._locals[feed.name] = LocalNode(self, head, work, usage, capacity, self._limits)
        self._locals[feed.name].learn(dict(self._channels.get(feed.shared.dataset.name, {})))

    async def _try_local(self, feed: FeedToShare, head: HeadDriver) -> None:
        """The data cluster cannot be a node of a feed, as its function cannot be had: tries until it can."""
        while True:
            await asyncio.sleep(_AGAIN_SECONDS)
            work = await asyncio.to_thread(_make, feed)
            if not isinstance(work, str):
                return self._begin_local(feed, head, work)
            head.decline(LOCAL, work)

    async def _end(self, feed: str) -> None:
        if (trying := self._trying.pop(feed, None)) is not None:
            trying.cancel()
            await asyncio.gather(trying, return_exceptions=True)
        head, local = self._heads.pop(feed, None), self._locals.pop(feed, None)
        if local is not None:
            await local.stop()
        if head is not None:
            await head.stop()
        if not self._heads and self._rounds is not None:
            self._rounds.cancel()
            self._rounds = None
        for connection in list(self._connections.values()):
            connection.send(FeedEnded(feed))

    def _look_soon(self) -> None:
        self._rounds = self._loop.call_later(self._settings.round_seconds, self._look)

    def _look(self) -> None:
        """Whether all nodes are needed, and who is not."""
        spare = self._elasticity.spare(self._loop.time(), *(list(head.core.registry) for head in self._heads.values()))
        self._spare = spare.name if spare else ""
        if self._settings.elastic and spare:
            log.info("a node is not needed, and is emptied", node=spare.name)
            self._leaving[spare.name] = None
        # Again and again, for a feed may have begun since, or all others may have died.
        for node in list(self._leaving):
            on = self._can_leave(node)
            for head in self._heads.values():
                head.tell(events.Spare(node, on))
            if not on:
                self._leaving.pop(node, None)
        self._look_soon()

    def _can_leave(self, node: str) -> bool:
        """Whether others can have its slices."""
        registries = [head.core.registry for head in self._heads.values()]
        return all(
            any(member.takes and not member.fails and member.name != node for member in registry)
            for registry in registries
            if registry.get(node)
        )

    def _introduce(self, head: HeadDriver, connection: NodeConnection) -> None:
        """Tells a node of a feed and of the channels that are matched with it."""
        connection.send(self._make_begun(head))
        for channel in self._channels.get(head.shared.dataset.name, {}).values():
            connection.send(FeedChannel(head.name, head.incarnation, channel))

    def _tell(self, dataset: str, channel: NodeChannel) -> None:
        self._channels.setdefault(dataset, {})[channel.name] = channel
        for head, connection in self._list_listeners(dataset):
            connection.send(FeedChannel(head.name, head.incarnation, channel))

    def _withdraw(self, dataset: str, channel: str) -> None:
        self._channels.get(dataset, {}).pop(channel, None)
        for head, connection in self._list_listeners(dataset):
            connection.send(FeedChannelEnded(head.name, head.incarnation, channel))

    def _list_listeners(self, dataset: str) -> list[tuple[HeadDriver, NodeConnection]]:
        """Who is told of a dataset's channels: the nodes, and those here, which may have no connection just now."""
        heads = [head for head in self._heads.values() if head.shared.dataset.name == dataset]
        remote = [one for one in self._connections.values() if not isinstance(one, LocalNode)]
        told: list[tuple[HeadDriver, NodeConnection]] = [(head, one) for head in heads for one in remote]
        return told + [(head, self._locals[head.name]) for head in heads if head.name in self._locals]

    def _make_begun(self, head: HeadDriver) -> FeedBegun:
        return FeedBegun(head.shared, head.incarnation, self._limits.batch_seconds)

    def _close(self, number: int, reason: str) -> None:
        if connection := self._connections.get(number):
            log.warning("a node's connection is closed", node=connection.node, reason=reason)
            self.disconnect(number)
            connection.close(reason)

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _make(feed: FeedToShare) -> SliceWork | str:
    """What processes slices here, or why nothing can."""
    try:
        return feed.work()
    except InvalidError as error:
        return str(error)[:REASON]


def patient_limits(limits: SliceLimits, shared: SharedFeed) -> SliceLimits:
    """A feed's function may take its time for each slice, and longer where it is searched for records at fault."""
    if not shared.feed.processed_by:
        return limits
    seconds = shared.function.seconds * (_FUNCTION_TIMES + shared.feed.slices)
    return msgspec.structs.replace(limits, stuck_seconds=max(limits.stuck_seconds, seconds))


def limits_of(settings: NodesSettings, batch_seconds: float) -> SliceLimits:
    """The cores' limits; what is no setting has its default."""
    given = msgspec.structs.asdict(settings) | {"batch_seconds": batch_seconds}
    return SliceLimits(**{name: given[name] for name in SliceLimits.__struct_fields__ if name in given})
