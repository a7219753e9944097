"""The core of the head: who owns which slice, whose commits count, and which slices move."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import partial
from math import inf

from tocsin.slices import events
from tocsin.slices.actions import Action, Close
from tocsin.slices.balancing import SliceBalancer, SlicePlanners
from tocsin.slices.commits import CommitQueue, OfferedCommit
from tocsin.slices.elasticity import Elasticity
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import (
    AddSlices,
    Commit,
    CommitAccepted,
    CommitRefused,
    Declined,
    Epoch,
    FromNode,
    Grant,
    Hello,
    Leave,
    MayLeave,
    NodeReport,
    Prepared,
    Released,
    RemoveSlices,
    SliceState,
    Welcome,
)
from tocsin.slices.ownership import Ownership
from tocsin.slices.post import HeadPost
from tocsin.slices.registry import NodeMember, NodeRegistry
from tocsin.slices.sessions import BalancingSessions


class HeadCore:
    """The head of one feed's processing nodes, without sockets, clock and lake.

    All that outlives it are the markers in the dataset, and that its term was used. Who owned what, it is told by the
    nodes when they come back.

    What can go wrong: a node is lost (its slices are given to others after the time of grace), hangs (the same), talks
    and does not get on with a slice, whatever it says of it (that is given to another), is cut off and goes on (its
    commits bear an old epoch); the head itself dies (the next one has a higher term, lets nodes keep what they had, and
    gives away what nobody claims); the disk refuses (nothing of what was to be stored counts, and nodes do it again).

    Args:
        term: higher than that of every head before; kept by whoever starts heads.
        markers: up to which position of each slice the dataset has it.
        elasticity: empties nodes that are not needed; None: operators do.
    """

    def __init__(
        self,
        term: int,
        markers: Sequence[int],
        planners: SlicePlanners | None = None,
        limits: SliceLimits | None = None,
        elasticity: Elasticity | None = None,
    ) -> None:
        self._limits = limits or SliceLimits()
        self.registry = NodeRegistry(self._limits)
        self.ownership = Ownership(term, len(markers), self._limits)
        self.commits = CommitQueue(term, markers, self.ownership)
        self.balancer = SliceBalancer(planners or SlicePlanners.by_name())
        self._elasticity = elasticity
        self._post = HeadPost(self.registry)
        self.sessions = BalancingSessions(
            self.ownership, self.commits, self.registry, self._post, self._limits, self.balancer.own
        )
        self._settled: float | None = None
        self._round, self._due = 0.0, -inf
        self._drained: dict[str, None] = {}

    def handle(self, now: float, event: events.Event) -> list[Action]:
        """What is to be done, in this order."""
        if self._settled is None:
            self._settled = now + self._limits.settling_seconds
            self._round = now + self._limits.round_seconds
        self._dispatch(now, event)
        if now >= self._due:
            self._see_to(now)
        if store := self.commits.next():
            self._post.add(store)
        return self._post.take()

    def wake(self) -> float | None:
        """When the core wants a Tick, at the latest."""
        return self._due

    def _dispatch(self, now: float, event: events.Event) -> None:
        match event:
            case events.NodeSaid(connection, message):
                self._heard(now, connection, message)
            case events.LogReaches(ends, checking):
                self._watch(now, ends, checking)
            case events.NodeLost(connection):
                if member := self.registry.on(connection):
                    self._lose(now, member)
            case events.Stored(number):
                for offered in self.commits.stored(number, now):
                    self._answer(offered, CommitAccepted(offered.commit.batch))
                    if member := self.registry.get(offered.node):
                        member.get_on()
                self.sessions.due(now)
                self._due = now if self.ownership.free() or self.sessions else self._due
            case events.StoreFailed(number):
                for offered in self.commits.failed(number):
                    self._answer(offered, CommitRefused(offered.commit.batch, self.commits.positions(offered.commit)))
                self._due = now
            case events.Decided(round_, decision):
                self.sessions.plan(self.balancer.take_up(round_, decision))
                self._due = now
            case events.Drain(node, on):
                self._drain(node, on)
                self._due = now
            case events.Spare(node, on):
                draining = on or node in self._drained
                if (member := self.registry.get(node)) and member.draining != draining:
                    member.draining, member.told = draining, False
                    self._due = now

    def _heard(self, now: float, connection: int, message: FromNode) -> None:
        member = self.registry.on(connection)
        if isinstance(message, Hello):
            if member is None:
                self._welcome(now, connection, message)
            return
        if member is None:
            self._post.add(Close(connection, "a node says hello first"))
            return
        member.heard = now
        match message:
            case Commit():
                self._commit(connection, member, message)
            case NodeReport():
                self.registry.report(member, message)
                self.balancer.report(now, member, message, self.ownership.of(member.name))
            case Prepared(session):
                self.sessions.prepared(now, member.name, session)
                self._due = now
            case Released(session):
                self.sessions.released(now, member.name, session)
                self._due = now
            case Declined(slices):
                self._declined(now, member, slices)
            case Leave():
                member.leaving = True
                self._due = now

    def _welcome(self, now: float, connection: int, hello: Hello) -> None:
        """A node has come, perhaps again: it is told all that it has."""
        if not (math.isfinite(hello.capacity) and hello.capacity > 0) or not hello.node:
            self._post.add(Close(connection, "a node has a name, and a capacity above 0"))
            return
        before = self.registry.get(hello.node)
        if before is not None and before.connection is not None:
            self._post.add(Close(before.connection, f"{hello.node} has come on another connection"))
            self._lose(now, before)
        member = self.registry.add(now, connection, hello)
        member.draining = hello.node in self._drained
        self.balancer.join(member)
        for slice_ in self.ownership.of(member.name):
            if hello.holding.get(slice_) != self.ownership[slice_].epoch:
                self.ownership.renew(slice_)
        for slice_ in hello.holding:
            if self._is_free(now, slice_) and not member.empties:
                self._give(slice_, member.name)
        grants = [self._grant(slice_) for slice_ in self.ownership.of(member.name)]
        self._post.order(member.name, lambda order: Welcome(order, grants))
        self._due = now

    def _commit(self, connection: int, member: NodeMember, commit: Commit) -> None:
        offered = OfferedCommit(member.name, connection, commit)
        if not self.commits.offer(offered):
            self._answer(offered, CommitRefused(commit.batch, self.commits.positions(commit)))

    def _answer(self, offered: OfferedCommit, answer: CommitAccepted | CommitRefused) -> None:
        """Tells whoever has sent a commit, if it still has the connection on which that came."""
        member = self.registry.on(offered.connection)
        if member is not None and member.name == offered.node:
            self._post.say(offered.node, answer)

    def _declined(self, now: float, member: NodeMember, slices: dict[int, Epoch]) -> None:
        self.sessions.declined(member.name, slices)
        for slice_, epoch in slices.items():
            if slice_ in self.ownership and self.ownership.is_owner(member.name, slice_, epoch):
                self._take_away(now, slice_, avoid=member.name)
        self._due = now

    def _watch(self, now: float, ends: Sequence[int], checking: Collection[int]) -> None:
        """Takes away what nodes do not get on with, whatever they say: the log goes on, and nothing is committed.

        What is on its way into the dataset waits for the head, and not for its owner.
        """
        stuck: dict[str, dict[int, Epoch]] = {}
        for owned, end, marker in zip(self.ownership.slices, ends, self.commits.markers, strict=False):
            offered = owned.number in checking or self.commits.is_busy(owned.number)
            late = self.ownership.watch(owned.number, now, end > marker, offered)
            if late and owned.owner is not None:
                stuck.setdefault(owned.owner, {})[owned.number] = owned.epoch
        for name, slices in stuck.items():
            if (member := self.registry.get(name)) and member.connection is not None:
                self._relieve(now, member, slices)

    def _relieve(self, now: float, member: NodeMember, slices: dict[int, Epoch]) -> None:
        """Takes slices from a node; which is to blame, unless it gets on with all others and has said so."""
        for slice_ in slices:
            self._take_away(now, slice_, avoid=member.name)
        left_out = member.report.left_out.keys() if member.report is not None else ()
        if member.problem or any(slice_ not in left_out for slice_ in slices):
            member.bench(now, self._limits)
        self._post.order(member.name, lambda order: RemoveSlices(order, slices))
        self._due = now

    def _drain(self, node: str, on: bool) -> None:
        if on:
            self._drained[node] = None
        else:
            self._drained.pop(node, None)
        if member := self.registry.get(node):
            member.draining, member.told = on, False

    def _lose(self, now: float, member: NodeMember) -> None:
        self.registry.lose(now, member)
        self.sessions.lost(member.name)
        self._due = now

    def _see_to(self, now: float) -> None:
        """All that does not follow from one event alone."""
        for member in self.registry.silent(now):
            if member.connection is not None:
                self._post.add(Close(member.connection, f"{member.name} has said nothing for too long"))
            self._lose(now, member)
        for member in self.registry.dead(now):
            self._bury(now, member)
        self.sessions.due(now)
        self._place(now)
        self._look(now)
        self.sessions.begin(now)
        self._farewell()
        settled = self._settled if self._settled is not None and self._settled > now else inf
        waits = self.registry.wake(), self.sessions.wake(), self.ownership.wake(now), self._round, settled
        self._due = min(waits)

    def _bury(self, now: float, member: NodeMember) -> None:
        """A node is gone: its slices have no owner any more."""
        for slice_ in self.ownership.of(member.name):
            self._take_away(now, slice_)
        self.balancer.leave(member.name)
        self.registry.forget(member)

    def _place(self, now: float) -> None:
        """Gives slices without an owner to those who can take them."""
        if self._settled is None or now < self._settled:
            return
        free = [slice_ for slice_ in self.ownership.free() if self._is_free(now, slice_)]
        nodes = [member for member in self.registry if member.takes]
        if not free or not nodes:
            return
        nodes = [member for member in nodes if not member.fails] or nodes
        given: dict[str, list[Grant]] = {}
        avoid = {slice_: self.ownership[slice_].avoid for slice_ in free}
        for slice_, node in self.balancer.place(free, nodes, avoid):
            self._give(slice_, node)
            given.setdefault(node, []).append(self._grant(slice_))
        for node, grants in given.items():
            self._post.order(node, partial(AddSlices, session=0, grants=grants))

    def _look(self, now: float) -> None:
        """A round of balancing, when it is time for one and nothing is on the move."""
        if now < self._round:
            return
        self._round = now + self._limits.round_seconds
        self.registry.try_again(now)
        if self.sessions:
            return
        idle = self._elasticity.spare(now, list(self.registry)) if self._elasticity else None
        if idle is not None:
            idle.draining = True
        if question := self.balancer.look(now, self.registry):
            self._post.add(question)

    def _farewell(self) -> None:
        """Who is to be emptied and is, may leave."""
        for member in self.registry:
            if member.empties and not member.told and self._is_empty(member):
                member.told = True
                self._post.order(member.name, MayLeave)

    def _is_empty(self, member: NodeMember) -> bool:
        taking = any(session.taker == member.name for session in self.sessions)
        return member.connection is not None and not taking and not self.ownership.of(member.name)

    def _is_free(self, now: float, slice_: int) -> bool:
        """Whether a slice can be given to somebody: it has no owner, and it is known where it goes on."""
        if slice_ not in self.ownership:
            return False
        owned = self.ownership[slice_]
        return owned.owner is None and owned.free_at <= now and not self.commits.is_busy(slice_)

    def _give(self, slice_: int, node: str) -> None:
        self.ownership.give(slice_, node, self.ownership.next_epoch())
        self.balancer.own(slice_, node)

    def _take_away(self, now: float, slice_: int, avoid: str | None = None) -> None:
        self.ownership.take_away(slice_, now)
        self.ownership[slice_].avoid = avoid
        self.balancer.disown(slice_)

    def _grant(self, slice_: int) -> Grant:
        epoch = self.ownership[slice_].epoch
        return Grant(slice_, epoch, SliceState.AVAILABLE, self.commits.markers[slice_])
