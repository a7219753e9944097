"""Load balancing sessions: slices on their way from one node to another while data flows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from math import inf

from tocsin.slices.commits import CommitQueue
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import AddSlices, Epoch, Grant, RemoveSlices, SliceState, UpdateSlices
from tocsin.slices.ownership import Ownership
from tocsin.slices.post import HeadPost
from tocsin.slices.registry import NodeRegistry


@dataclass(frozen=True)
class Transfer:
    """Slices that are to go from one node to another."""

    giver: str
    taker: str
    slices: tuple[int, ...]


class SessionStep(Enum):
    """How far a session is."""

    ADDING = auto()  # the taker prepares; the giver goes on as if nothing were
    RELEASING = auto()  # the giver commits what it has in hand, and takes nothing new
    SETTLING = auto()  # the taker owns the slices; the last commit of the giver is being stored


@dataclass
class BalancingSession:
    """Two nodes and the slices between them, by the epochs that the taker is promised."""

    number: int
    giver: str
    taker: str
    epochs: dict[int, Epoch]
    deadline: float
    step: SessionStep = SessionStep.ADDING


class BalancingSessions:
    """All sessions, under way and to come. A node is in one at most; its others begin when that one is over.

    What can go wrong, and what becomes of it:

    - the taker is lost, declines, or does not get ready in time: the giver goes on, and keeps its slices;
    - the giver is lost before it was asked to release: it keeps its slices, for as long as nodes do that are lost;
    - the giver is lost or does not answer after that: its epoch ends, and the taker goes on from the markers;
    - a node that is to take no more when its session would begin: the session does not begin;
    - the head dies: there are no sessions then, and whoever has a slice keeps it.

    Args:
        moved: told of each slice that has a new owner, and of that.
    """

    def __init__(
        self,
        ownership: Ownership,
        commits: CommitQueue,
        registry: NodeRegistry,
        post: HeadPost,
        limits: SliceLimits,
        moved: Callable[[int, str], None],
    ) -> None:
        self._ownership, self._commits, self._registry = ownership, commits, registry
        self._post, self._limits, self._moved = post, limits, moved
        self._pending: deque[Transfer] = deque()
        self._ongoing: dict[int, BalancingSession] = {}
        self._busy: dict[str, int] = {}
        self._number = 0
        self.moves = 0
        """How many slices have a new owner by a session."""

    def __iter__(self) -> Iterator[BalancingSession]:
        return iter(self._ongoing.values())

    def __bool__(self) -> bool:
        return bool(self._ongoing or self._pending)

    def plan(self, transfers: Iterable[Transfer]) -> None:
        """These are to be carried out; what was planned before and has not begun is not."""
        self._pending.clear()
        most = self._limits.session_slices
        for transfer in transfers:
            for first in range(0, len(transfer.slices), most):
                slices = transfer.slices[first : first + most]
                self._pending.append(Transfer(transfer.giver, transfer.taker, slices))

    def begin(self, now: float) -> None:
        """Begins the sessions whose nodes are in no other, in the order in which they were planned."""
        waiting = list(self._pending)
        self._pending.clear()
        blocked = set(self._busy)
        for transfer in waiting:
            nodes = {transfer.giver, transfer.taker}
            if len(self._ongoing) >= self._limits.sessions or nodes & blocked:
                blocked |= nodes
                self._pending.append(transfer)
            elif self._begin(now, transfer):
                blocked |= nodes

    def prepared(self, now: float, node: str, number: int) -> None:
        """The taker is ready: the giver takes nothing new from now on."""
        session = self._at(number, SessionStep.ADDING)
        if session is None or session.taker != node or not self._narrow(session):
            return
        session.step, session.deadline = SessionStep.RELEASING, now + self._limits.release_seconds
        grants = self._grants(session.epochs, SliceState.IN_SESSION)
        self._post.order(session.giver, lambda order: UpdateSlices(order, number, grants))

    def released(self, now: float, node: str, number: int) -> None:
        """The giver has nothing in hand any more: the slices are the taker's."""
        session = self._at(number, SessionStep.RELEASING)
        if session is not None and session.giver == node:
            self._hand_over(session)
            self.due(now)

    def declined(self, node: str, slices: Iterable[int]) -> None:
        """A node cannot process some slices."""
        for session in list(self._ongoing.values()):
            if session.taker == node and not session.epochs.keys().isdisjoint(slices):
                self._cancel(session)

    def lost(self, node: str) -> None:
        """A node has no connection any more."""
        session = self._ongoing.get(self._busy.get(node, 0))
        if session is None:
            return
        if session.step is SessionStep.SETTLING:
            if session.taker == node:
                self._end(session)
        elif session.giver == node and session.step is SessionStep.RELEASING:
            self._hand_over(session)
        else:
            self._cancel(session)

    def due(self, now: float) -> None:
        """Ends waiting, and opens the gates of what is settled."""
        for session in list(self._ongoing.values()):
            if session.step is SessionStep.ADDING and session.deadline <= now:
                self._cancel(session)
            elif session.step is SessionStep.RELEASING and session.deadline <= now:
                self._hand_over(session)
            if session.step is SessionStep.SETTLING and not any(map(self._commits.is_busy, session.epochs)):
                self._open(session)

    def wake(self) -> float:
        """When the next session has waited for long enough."""
        return min((session.deadline for session in self._ongoing.values()), default=inf)

    def _at(self, number: int, step: SessionStep) -> BalancingSession | None:
        session = self._ongoing.get(number)
        return session if session is not None and session.step is step else None

    def _begin(self, now: float, transfer: Transfer) -> bool:
        own = [slice_ for slice_ in transfer.slices if self._ownership[slice_].owner == transfer.giver]
        giver = self._registry.get(transfer.giver)
        connected = giver is not None and giver.connection is not None
        if not own or not connected or not self._registry.takes(transfer.taker):
            return False
        self._number += 1
        epochs = {slice_: self._ownership.next_epoch() for slice_ in own}
        deadline = now + self._limits.prepare_seconds
        session = BalancingSession(self._number, transfer.giver, transfer.taker, epochs, deadline)
        self._ongoing[session.number] = session
        self._busy[transfer.giver] = self._busy[transfer.taker] = session.number
        markers = self._commits.markers
        grants = [Grant(slice_, epoch, SliceState.IN_SESSION, markers[slice_]) for slice_, epoch in epochs.items()]
        self._post.order(session.taker, lambda order: AddSlices(order, session.number, grants))
        return True

    def _narrow(self, session: BalancingSession) -> bool:
        """Leaves out what the giver has no more; whether something is left."""
        gone = {
            slice_: epoch for slice_, epoch in session.epochs.items() if self._ownership[slice_].owner != session.giver
        }
        if gone:
            session.epochs = {slice_: epoch for slice_, epoch in session.epochs.items() if slice_ not in gone}
            self._post.order(session.taker, lambda order: RemoveSlices(order, gone))
        if not session.epochs:
            self._end(session)
        return bool(session.epochs)

    def _hand_over(self, session: BalancingSession) -> None:
        """The taker owns the slices from now on; a commit of the giver does not count any more."""
        if not self._narrow(session):
            return
        before = {slice_: self._ownership[slice_].epoch for slice_ in session.epochs}
        for slice_, epoch in session.epochs.items():
            self._ownership.give(slice_, session.taker, epoch)
            self._moved(slice_, session.taker)
            self.moves += 1
        self._post.order(session.giver, lambda order: RemoveSlices(order, before))
        session.step, session.deadline = SessionStep.SETTLING, inf

    def _open(self, session: BalancingSession) -> None:
        """The markers are what the giver has left: the taker goes on exactly there."""
        own = [
            slice_ for slice_, epoch in session.epochs.items() if self._ownership.is_owner(session.taker, slice_, epoch)
        ]
        grants = self._grants(own, SliceState.AVAILABLE)
        self._post.order(session.taker, lambda order: UpdateSlices(order, session.number, grants))
        self._end(session)

    def _cancel(self, session: BalancingSession) -> None:
        """The giver goes on."""
        promised = dict(session.epochs)
        self._post.order(session.taker, lambda order: RemoveSlices(order, promised))
        if session.step is SessionStep.RELEASING:
            own = [slice_ for slice_ in promised if self._ownership[slice_].owner == session.giver]
            grants = self._grants(own, SliceState.AVAILABLE)
            self._post.order(session.giver, lambda order: UpdateSlices(order, session.number, grants))
        self._end(session)

    def _end(self, session: BalancingSession) -> None:
        self._ongoing.pop(session.number, None)
        for node in (session.giver, session.taker):
            if self._busy.get(node) == session.number:
                del self._busy[node]

    def _grants(self, slices: Iterable[int], state: SliceState) -> list[Grant]:
        """Slices as their owners are to have them."""
        markers, ownership = self._commits.markers, self._ownership
        return [Grant(slice_, ownership[slice_].epoch, state, markers[slice_]) for slice_ in slices]
