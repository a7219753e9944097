"""Moves of subscribers, make before break: each is a small state machine, and its message may be said again any time.

A move begins with a new number for the stay it leads to, stored before anybody hears it. The destination prepares; then
the source tells the subscriber; when it has arrived, or the source says that it is absent, or there is no source that
lives, the new assignment is stored and the source told to let go.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

from msgspec.structs import replace

from tocsin.coordinator.actions import Reply
from tocsin.coordinator.answers import Located
from tocsin.coordinator.assignments import Assignments
from tocsin.coordinator.events import Link
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.move import MoveEnded, OngoingMove, Phase
from tocsin.coordinator.outbox import TransactionalOutbox
from tocsin.coordinator.preparations import Preparations
from tocsin.coordinator.registry import BrokerRegistry
from tocsin.coordinator.repair import Repair
from tocsin.coordinator.store.records import Assignment
from tocsin.coordinator.workload import NamedWorkload
from tocsin.errors import TocsinError, UnavailableError
from tocsin.model.coordination import Handover, Kept, Release


class OngoingMoves:
    """All moves under way, at most one per subscriber.

    What can go wrong, and what then happens:

    - The destination does not prepare in time, refuses, or dies: the move is given up.
    - The subscriber does not come in time: the move is given up, the destination is told to release the new stay.
    - The source dies: as soon as the destination is prepared, the subscriber belongs there.
    - A link is lost: what is not yet answered is said again when the broker is back.
    - The coordinator restarts: moves are read back from the assignments, and begin again with their first message.
    - The subscriber is removed: the move ends, and both brokers are told to release it.
    - The subscriber subscribes at the source meanwhile: the destination prepares again, and only then is it ``Kept``.
    """

    def __init__(
        self,
        registry: BrokerRegistry,
        assignments: Assignments,
        workload: NamedWorkload,
        outbox: TransactionalOutbox,
        limits: CoordinatorLimits,
        preparations: Preparations,
        repair: Repair,
    ) -> None:
        self._registry, self._assignments, self._workload, self._outbox = registry, assignments, workload, outbox
        self._limits, self._preparations, self._repair = limits, preparations, repair
        self._moves: dict[str, OngoingMove] = {}
        self._deadlines: list[tuple[float, str, int]] = []
        self.ended: list[MoveEnded] = []

    def __len__(self) -> int:
        return len(self._moves)

    def get(self, subscriber: str) -> OngoingMove | None:
        """The move of a subscriber, if it is being moved."""
        return self._moves.get(subscriber)

    def start(self, now: float, subscriber: str, destination: str) -> OngoingMove:
        """Begins to move a subscriber, or to place it."""
        assignment = self._assignments.get(subscriber)
        assignment = replace(assignment, destination=destination, coming=assignment.coming + 1)
        move = self._moves[subscriber] = OngoingMove(subscriber, assignment.coming)
        self._put(assignment)
        self._prepare(now, move)
        return move

    def restore(self, now: float) -> None:
        """Takes up the moves that were under way when the coordinator ended."""
        for assignment in self._assignments.all():
            if assignment.destination is not None:
                move = self._moves[assignment.subscriber] = OngoingMove(assignment.subscriber, assignment.coming)
                self._limit(move, now + self._limits.returning + self._limits.preparing)

    def prepared(self, now: float, subscriber: str, stay: int) -> None:
        """The destination has what it was asked to hold."""
        move = self._of(subscriber, stay)
        if move is None or move.phase is not Phase.PREPARING:
            return
        if move.outdated:
            self._prepare(now, move)
            return
        move.phase = Phase.TELLING
        self._pay(move)
        if not self._registry.alive(self._assignments.get(subscriber).broker):
            self._settle(move)
            return
        self._answer(move, self._assignments.get(subscriber).destination)
        self._limit(move, now + self._limits.arriving)
        self._tell(move)

    def unprepared(self, subscriber: str, stay: int, reason: str) -> None:
        """The destination cannot take the subscriber."""
        if move := self._of(subscriber, stay):
            self._cancel(move, reason)

    def absent(self, subscriber: str, stay: int) -> None:
        """The source has nobody to tell. ``stay`` is the one to be left."""
        move = self._moves.get(subscriber)
        if move and move.phase is Phase.TELLING and stay == self._assignments.get(subscriber).stay:
            self._settle(move)

    def arrived(self, subscriber: str, stay: int) -> None:
        """The subscriber is at its destination."""
        if move := self._of(subscriber, stay):
            self._settle(move)

    def changed(self, now: float, move: OngoingMove, link: Link, ref: int) -> None:
        """The source has a change of the subscriptions, which the destination must know before anybody counts on it."""
        move.owed.append((link, ref))
        if move.phase is Phase.PREPARING:
            move.outdated = True
        else:
            self._prepare(now, move)

    def returned(self, now: float, broker: str, prepared: set[tuple[str, int]]) -> None:
        """A broker is back, prepared for these stays: says again what it may not have heard."""
        for move in list(self._moves.values()):
            assignment = self._assignments.get(move.subscriber)
            told = move.phase is Phase.TELLING
            if assignment.destination == broker and not (told and (move.subscriber, move.stay) in prepared):
                self._prepare(now, move)
            elif assignment.broker == broker and told:
                self._tell(move)

    def fallen(self, broker: str) -> None:
        """A broker is dead: nobody goes there, and nobody need be told by it."""
        for move in list(self._moves.values()):
            assignment = self._assignments.get(move.subscriber)
            if assignment.destination == broker:
                self._cancel(move, f"broker {broker} has died")
            elif assignment.broker == broker and move.phase is Phase.TELLING:
                self._settle(move)

    def expire(self, now: float) -> None:
        """Gives up what has taken too long."""
        while self.wake() <= now:
            _, subscriber, _ = heappop(self._deadlines)
            self._cancel(self._moves[subscriber], "its broker was not ready in time")

    def cancel(self, subscriber: str, reason: str) -> None:
        """Gives a move up, if there is one."""
        if move := self._moves.get(subscriber):
            self._cancel(move, reason)

    def abandon(self, assignment: Assignment, error: TocsinError) -> None:
        """Ends the move of somebody who is no more and had this assignment, if there is one."""
        if move := self._moves.pop(assignment.subscriber, None):
            self._outbox.send(self._registry.link(assignment.destination), Release(assignment.subscriber, move.stay))
            for waiter in move.waiters:
                self._outbox.say(Reply(waiter, error))

    def wake(self) -> float:
        """When the next deadline is. What was a deadline of a move that is over, or has another since, is none."""
        while self._deadlines and not self._counts(*self._deadlines[0]):
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else inf

    def _counts(self, deadline: float, subscriber: str, stay: int) -> bool:
        move = self._of(subscriber, stay)
        return move is not None and move.deadline == deadline

    def _of(self, subscriber: str, stay: int) -> OngoingMove | None:
        move = self._moves.get(subscriber)
        return move if move is not None and move.stay == stay else None

    def _put(self, assignment: Assignment) -> None:
        self._assignments.put(assignment)
        held = self._assignments.numbers_of(assignment.subscriber)
        self._workload.seat(assignment.subscriber, assignment.destination or assignment.broker, held)

    def _prepare(self, now: float, move: OngoingMove) -> None:
        move.phase, move.outdated = Phase.PREPARING, False
        self._limit(move, now + self._limits.preparing)
        self._preparations.ask(self._assignments.get(move.subscriber).destination, move.subscriber, move.stay)

    def _tell(self, move: OngoingMove) -> None:
        assignment = self._assignments.get(move.subscriber)
        url = self._registry.member(str(assignment.destination)).record.url
        self._outbox.send(self._registry.link(assignment.broker), Handover(move.subscriber, assignment.stay, url))

    def _settle(self, move: OngoingMove) -> None:
        before = self._assignments.get(move.subscriber)
        now = replace(before, broker=before.destination, stay=move.stay, destination=None)
        self._put(now)
        if move.phase is Phase.PREPARING:
            # It came before the destination had answered, which may not know the latest subscriptions.
            self._repair.remind(now, answers=2)
        else:
            self._repair.sure(move.subscriber)
        self._pay(move)
        self._outbox.send(self._registry.link(before.broker), Release(move.subscriber, before.stay))
        self._answer(move, now.broker)
        self._end(move, settled=True, placed=before.broker is None)

    def _cancel(self, move: OngoingMove, reason: str) -> None:
        before = self._assignments.get(move.subscriber)
        self._put(replace(before, destination=None))
        self._outbox.send(self._registry.link(before.destination), Release(move.subscriber, move.stay))
        self._pay(move)
        if self._registry.alive(before.broker):
            self._answer(move, before.broker)
        else:
            self._disappoint(move, reason)
        self._end(move, settled=False)

    def _end(self, move: OngoingMove, settled: bool, placed: bool = False) -> None:
        del self._moves[move.subscriber]
        self.ended.append(MoveEnded(move.subscriber, settled, placed))

    def _pay(self, move: OngoingMove) -> None:
        for link, ref in move.owed:
            self._outbox.send(link, Kept(ref))
        move.owed.clear()

    def _answer(self, move: OngoingMove, broker: str | None) -> None:
        record = self._registry.member(str(broker)).record
        for waiter in move.waiters:
            self._outbox.say(Reply(waiter, Located(record.name, record.url)))
        move.waiters.clear()

    def _disappoint(self, move: OngoingMove, reason: str) -> None:
        for waiter in move.waiters:
            self._outbox.say(Reply(waiter, UnavailableError(f"no broker yet: {reason}; ask again in a second")))

    def _limit(self, move: OngoingMove, deadline: float) -> None:
        move.deadline = deadline
        heappush(self._deadlines, (deadline, move.subscriber, move.stay))
