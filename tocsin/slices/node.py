"""The core of a processing node: which slices it processes, from where on, and what it has in hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from tocsin.slices import events
from tocsin.slices.actions import Action, Discard, EndNode, Forget, Prepare, Process, SendHead
from tocsin.slices.failures import FailingSlices
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import (
    LONG_REASON,
    SHORT_REASON,
    AddSlices,
    Commit,
    CommitAccepted,
    CommitRefused,
    Declined,
    Epoch,
    FromHead,
    FromNode,
    Grant,
    Hello,
    Leave,
    MayLeave,
    NodeReport,
    Order,
    Prepared,
    Released,
    RemoveSlices,
    SlicePart,
    SliceState,
    UpdateSlices,
    Welcome,
)

# No head gives it, so whatever is had by it is prepared before it is processed.
_NO_EPOCH: Final = Epoch(0, 0)


@dataclass
class HeldSlice:
    """A slice at a node.

    Args:
        position: from where it is read next; None: the gate is closed, as the giver may still commit something of it.
        ready: whether it could be processed at once.
        session: in which it was given or is to be given away, 0 if in none.
    """

    epoch: Epoch
    state: SliceState
    position: int | None
    session: int = 0
    ready: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it may be read."""
        return self.ready and self.position is not None and self.state is SliceState.AVAILABLE


@dataclass
class _Batch:
    """What is in hand: being processed while it has no commit, then waiting for the head's answer."""

    epochs: dict[int, Epoch]
    commit: Commit | None = None
    parts: list[SlicePart] = field(default_factory=list)


class NodeCore:
    """A processing node without Spark, sockets and clock.

    It processes a batch at a time, and goes on while a few of them wait to be committed. Nothing that it does counts
    before the head has said so.

    What can go wrong: the head is lost (nothing is begun any more; when it is back, it says what the node has, and what
    fits is committed again); a commit is refused (it and what rests on it are dropped, and its slices are read again
    from where the head says); a batch fails (it is tried again after a while, and the slice that makes it fail is left
    out; the head is told of that, and if all fail again and again); a slice cannot be processed here (the head is told,
    and gives it to somebody else).

    Args:
        name: its own, which no other node has.
        capacity: how much it can do, in any unit that is the same for all nodes.
        holding: what it had before it began anew, which the head may let it keep, by new epochs.
    """

    def __init__(
        self,
        name: str,
        capacity: float = 1.0,
        limits: SliceLimits | None = None,
        holding: Iterable[int] = (),
    ) -> None:
        self.name, self.capacity, self._limits = name, capacity, limits or SliceLimits()
        self.slices = {number: HeldSlice(_NO_EPOCH, SliceState.IN_SESSION, None) for number in holding}
        self.leaving = self.stopped = False
        self._connected = self._welcomed = False
        self._last_order = 0
        self._batches: dict[int, _Batch] = {}
        self._processing: int | None = None
        self._number = 0
        self._next = 0.0
        self.failing = FailingSlices(self._limits)
        self._releasing: dict[int, dict[int, Epoch]] = {}
        self._preparing: dict[int, dict[int, Epoch]] = {}
        self._actions: list[Action] = []

    def handle(self, now: float, event: events.Event) -> list[Action]:
        """What is to be done, in this order."""
        if not self.stopped:
            self._dispatch(now, event)
            self._release()
            self._begin(now)
        actions, self._actions = self._actions, []
        return actions

    def wake(self) -> float | None:
        """When the core wants a Tick, at the latest."""
        at = max(self._next, self.failing.wake(self._open())) if self._may_begin() else inf
        return at if at < inf else None

    def _dispatch(self, now: float, event: events.Event) -> None:
        match event:
            case events.HeadSaid(message) if self._connected:
                self._heard(now, message)
            case events.Processed():
                self._processed(now, event)
            case events.ProcessingFailed(batch, reason):
                self._failed(now, batch, reason)
            case events.SlicesPrepared(slices):
                self._prepared(slices)
            case events.PreparationFailed(slices, reason):
                self._cannot(slices, reason)
            case events.Gauged():
                self._report(event)
            case events.HeadOpened():
                self._connected, self._welcomed = True, False
                holding = {number: held.epoch for number, held in self.slices.items()}
                self._say(Hello(self.name, self.capacity, holding, self.leaving))
            case events.HeadLost():
                self._connected = self._welcomed = False
            case events.LeaveWanted():
                self.leaving = True
                if self._welcomed:
                    self._say(Leave())

    def _heard(self, now: float, message: FromHead) -> None:
        match message:
            case CommitAccepted(batch):
                self._batches.pop(batch, None)
            case CommitRefused():
                self._refused(now, message)
            case _ if self._heeds(message):
                self._obey(now, message)

    def _heeds(self, order: Order) -> bool:
        """Whether an order is new. The first on a connection is the welcome, and there is no other."""
        if isinstance(order, Welcome) == self._welcomed or (self._welcomed and order.number <= self._last_order):
            return False
        self._welcomed, self._last_order = True, order.number
        return True

    def _obey(self, now: float, order: Order) -> None:
        match order:
            case Welcome(_, grants):
                self._start_over(now, grants)
            case AddSlices(_, session, grants):
                self._add(session, grants)
            case UpdateSlices(_, session, grants):
                self._update(session, grants)
            case RemoveSlices(_, slices):
                self._remove(slices)
            case MayLeave() if not self.slices:
                self.stopped = True
                self._actions.append(EndNode())

    def _start_over(self, now: float, grants: list[Grant]) -> None:
        """Has what the head says, and nothing else. What is in hand and fits is committed again."""
        given = {grant.slice: grant for grant in grants}
        gone = {number: held.epoch for number, held in self.slices.items() if number not in given}
        self._remove(gone)
        self._releasing.clear()
        self._preparing.clear()
        fits = {number: grant.position for number, grant in given.items()}
        for number, batch in list(self._batches.items()):
            if batch.commit and self._resumes(batch, given, fits):
                fits.update({part.slice: part.end for part in batch.parts})
                self._say(batch.commit)
            else:
                self._drop(number)
        self._add(0, grants)
        for number, position in fits.items():
            self.slices[number].position = position
        self._next = now

    @staticmethod
    def _resumes(batch: _Batch, given: dict[int, Grant], fits: dict[int, int]) -> bool:
        return all(
            part.slice in given and given[part.slice].epoch == part.epoch and fits[part.slice] == part.begin
            for part in batch.parts
        )

    def _add(self, session: int, grants: list[Grant]) -> None:
        """New slices, or those that it has by another epoch now."""
        new: dict[int, Epoch] = {}
        for grant in grants:
            number, before = grant.slice, self.slices.get(grant.slice)
            if before is None or before.epoch != grant.epoch:
                self._lose(number)
                self.failing.forget([number])
                new[number] = grant.epoch
            is_open = grant.state is SliceState.AVAILABLE
            held = HeldSlice(grant.epoch, grant.state, grant.position if is_open else None, session)
            held.ready = before is not None and before.ready
            self.slices[number] = held
        if session:
            self._preparing[session] = {grant.slice: grant.epoch for grant in grants}
        if unready := {number: epoch for number, epoch in new.items() if not self.slices[number].ready}:
            self._actions.append(Prepare(unready))
        self._report_prepared()

    def _update(self, session: int, grants: list[Grant]) -> None:
        for grant in grants:
            held = self.slices.get(grant.slice)
            if held is None or held.epoch != grant.epoch:
                continue
            held.state = grant.state
            held.session = session if grant.state is SliceState.IN_SESSION else 0
            if held.position is None and grant.state is SliceState.AVAILABLE:
                held.position = grant.position
        if any(grant.state is SliceState.IN_SESSION for grant in grants):
            self._releasing[session] = {grant.slice: grant.epoch for grant in grants}
        else:
            self._releasing.pop(session, None)

    def _remove(self, slices: dict[int, Epoch]) -> None:
        gone = {number: epoch for number, epoch in slices.items() if self._has(number, epoch)}
        for number in gone:
            self._lose(number)
            del self.slices[number]
        self.failing.forget(gone)
        if not self.slices:
            # Who has nothing cannot show that it would get on by now.
            self.failing = FailingSlices(self._limits)
        if gone:
            self._actions.append(Forget(gone))

    def _has(self, slice_: int, epoch: Epoch) -> bool:
        held = self.slices.get(slice_)
        return held is not None and held.epoch == epoch

    def _lose(self, slice_: int) -> None:
        """What is in hand of a slice will not count, nor will the batches that it is in."""
        for number, batch in list(self._batches.items()):
            if slice_ in batch.epochs:
                self._drop(number)
                self._read_again(batch)

    def _read_again(self, batch: _Batch) -> None:
        """The other slices of a batch that is dropped are read again from where it began."""
        for part in batch.parts:
            held = self.slices.get(part.slice)
            if held and held.epoch == part.epoch and held.position is not None:
                held.position = min(held.position, part.begin)

    def _drop(self, number: int) -> None:
        """Forgets a batch; what comes of it later is thrown away.

        Files that the head was told of stay: only it knows whether they count, since it may have been told twice.
        """
        self._batches.pop(number, None)
        if self._processing == number:
            self._processing = None

    def _prepared(self, slices: dict[int, Epoch]) -> None:
        for number, epoch in slices.items():
            if self._has(number, epoch):
                self.slices[number].ready = True
        self._report_prepared()

    def _report_prepared(self) -> None:
        for session, slices in list(self._preparing.items()):
            if all(self._has(number, epoch) and self.slices[number].ready for number, epoch in slices.items()):
                del self._preparing[session]
                self._say(Prepared(session))
            elif not all(self._has(number, epoch) for number, epoch in slices.items()):
                del self._preparing[session]

    def _cannot(self, slices: dict[int, Epoch], reason: str) -> None:
        failed = {number: epoch for number, epoch in slices.items() if self._has(number, epoch)}
        if failed:
            self._remove(failed)
            self._say(Declined(failed, reason))

    def _release(self) -> None:
        """Tells the head which slices have nothing in hand any more."""
        for session, slices in list(self._releasing.items()):
            if not any(number in batch.epochs for batch in self._batches.values() for number in slices):
                del self._releasing[session]
                self._say(Released(session))

    def _may_begin(self) -> bool:
        committing = len(self._batches) - (self._processing is not None)
        return (
            self._welcomed and self._processing is None and committing < self._limits.uncommitted and bool(self._open())
        )

    def _open(self) -> list[int]:
        return [number for number, held in self.slices.items() if held.is_open]

    def _begin(self, now: float) -> None:
        """The next batch, if there is something that may be read."""
        if now < self._next or not self._may_begin():
            return
        chosen = [(number, self.slices[number]) for number in self.failing.choose(now, self._open())]
        ranges = {number: (held.epoch, held.position) for number, held in chosen if held.position is not None}
        if not ranges:
            return
        self._number += 1
        self._processing = self._number
        self._next = now + self._limits.batch_seconds
        self._batches[self._number] = _Batch({number: epoch for number, (epoch, _) in ranges.items()})
        self._actions.append(Process(self._number, ranges))

    def _processed(self, now: float, event: events.Processed) -> None:
        batch = self._batches.get(event.batch)
        if batch is None or batch.commit:
            self._actions.append(Discard(event.files))
            return
        self._processing = None
        self.failing.succeed(batch.epochs, bool(event.parts))
        if not event.parts:
            del self._batches[event.batch]
            self._next = now + self._limits.idle_seconds
            return
        batch.parts, batch.commit = event.parts, Commit(event.batch, event.parts, event.files)
        batch.epochs = {part.slice: part.epoch for part in event.parts}
        for part in event.parts:
            self.slices[part.slice].position = part.end
        self._say(batch.commit)

    def _failed(self, now: float, number: int, reason: str) -> None:
        batch = self._batches.get(number)
        self._drop(number)
        expected = batch is not None and self.failing.fail(now, batch.epochs, reason)
        self._next = now + (self._limits.batch_seconds if expected else self._limits.retry_seconds)

    def _refused(self, now: float, refused: CommitRefused) -> None:
        """Drops a batch and those that rest on it; its slices go on where the head says."""
        batch = self._batches.get(refused.batch)
        if batch is None:
            return
        slices = list(batch.epochs)
        self._drop(refused.batch)
        for number in slices:
            self._lose(number)
        for number, position in refused.positions.items():
            held = self.slices.get(number)
            if held and held.position is not None:
                held.position = position
        self._next = now + self._limits.retry_seconds

    def _report(self, gauged: events.Gauged) -> None:
        if self._welcomed:
            own = [load for load in gauged.slices if load.slice in self.slices]
            problem, left_out = self.failing.problem or gauged.problem, self.failing.left_out
            figures = gauged.cpu, gauged.memory, gauged.rows, gauged.batch_seconds
            short = {number: reason[:SHORT_REASON] for number, reason in left_out.items()}
            self._say(NodeReport(*figures, own, problem[:LONG_REASON], short))

    def _say(self, message: FromNode) -> None:
        if self._connected:
            self._actions.append(SendHead(message))
