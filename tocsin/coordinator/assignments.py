"""Who is where, and holds what: in memory, with every change written down."""

from __future__ import annotations

from collections.abc import Collection
from math import inf

from msgspec.structs import replace

from tocsin.coordinator.outbox import TransactionalOutbox
from tocsin.coordinator.store.records import (
    Assignment,
    DropAssignment,
    DropHeld,
    PutAssignment,
    PutCursors,
    PutHeld,
    StoredState,
)
from tocsin.model.histories import Cursor, from_wire
from tocsin.model.subscriber import Cursors, Held


class Assignments:
    """All subscribers, and who was one until lately. Cursors only go forward, whoever reports them and in whatever
    order, as long as they are counted under one incarnation of the channel."""

    def __init__(self, state: StoredState, outbox: TransactionalOutbox) -> None:
        self._outbox = outbox
        self._assignments = {
            assignment.subscriber: assignment for assignment in state.assignments if not assignment.gone
        }
        gone = sorted(
            (assignment for assignment in state.assignments if assignment.gone), key=lambda assignment: assignment.gone
        )
        self._gone = {assignment.subscriber: assignment for assignment in gone}
        self._held = {name: dict(held) for name, held in state.held.items()}
        # Dictionaries as sets that keep their order, so that a simulation can be replayed.
        self._on: dict[str, dict[str, None]] = {}
        # The broker that each has left last, which may still have to tell how far they were.
        self._left: dict[str, str] = {}
        for assignment in state.assignments:
            self._settle(assignment)

    def __len__(self) -> int:
        return len(self._assignments)

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self._assignments

    def all(self) -> list[Assignment]:
        """Everybody."""
        return list(self._assignments.values())

    def get(self, subscriber: str) -> Assignment:
        """Where a subscriber is; one never heard of, or removed, is nowhere."""
        return self._assignments.get(subscriber) or self._gone.get(subscriber) or Assignment(subscriber)

    def put(self, assignment: Assignment) -> None:
        """Notes a new assignment."""
        before = self.get(assignment.subscriber)
        if before.broker is not None:
            self._on[before.broker].pop(assignment.subscriber, None)
        for broker in {before.broker, before.destination} - {assignment.broker, assignment.destination, None}:
            self._left[assignment.subscriber] = str(broker)
        here, there = (self._gone, self._assignments) if assignment.gone else (self._assignments, self._gone)
        there.pop(assignment.subscriber, None)
        here[assignment.subscriber] = assignment
        self._settle(assignment)
        self._outbox.write(PutAssignment(assignment))

    def register(self, subscriber: str, now: float, registration: int = 0) -> None:
        """Makes a subscriber known, who is another than the one of this name who was removed."""
        if subscriber not in self._assignments:
            before = self.get(subscriber)
            registration = max(registration, before.registration + bool(before.gone))
            self.put(Assignment(subscriber, coming=before.coming, seen=now, registration=registration))

    def remove(self, subscriber: str, until: float, registration: int = 0) -> None:
        """Forgets a subscriber with all that it holds; that it was removed is remembered until then.

        So no number of a stay is given again that some broker may have seen, and no token of before is taken, nor one
        of this ``registration``, which may be later than the known one.
        """
        for subscription in list(self._held.pop(subscriber, {})):
            self._outbox.write(DropHeld(subscriber, subscription))
        # Who was removed before is remembered for longer now, and comes last among those who are to be forgotten.
        assignment = self._gone.pop(subscriber, None) or self.get(subscriber)
        last = max(registration, assignment.registration)
        self.put(Assignment(subscriber, coming=assignment.coming, registration=last, gone=until))
        self._left.pop(subscriber, None)

    def forget(self, now: float, most: int) -> None:
        """Forgets that some were removed of whom nothing can be heard any more, so many at once."""
        while most and self._gone and self.forgotten_at() <= now:
            subscriber = next(iter(self._gone))
            del self._gone[subscriber]
            self._outbox.write(DropAssignment(subscriber))
            most -= 1

    def forgotten_at(self) -> float:
        """When the next that was removed may be forgotten."""
        return next(iter(self._gone.values())).gone if self._gone else inf

    def on(self, broker: str) -> list[Assignment]:
        """Who belongs to a broker."""
        return [self._assignments[subscriber] for subscriber in self._on.get(broker, ())]

    def count(self, broker: str) -> int:
        """How many belong to a broker."""
        return len(self._on.get(broker, ()))

    def belongs(self, subscriber: str, stay: int, broker: str) -> bool:
        """Whether a broker is to have this stay: the present one, or the one a move leads to."""
        assignment = self.get(subscriber)
        return (assignment.broker, assignment.stay) == (broker, stay) or (
            assignment.destination,
            assignment.coming,
        ) == (broker, stay)

    def subscriptions_of(self, subscriber: str) -> list[Held]:
        """What a subscriber holds, with its cursors."""
        return list(self._held.get(subscriber, {}).values())

    def numbers_of(self, subscriber: str) -> Collection[int]:
        """The numbers of what a subscriber holds, as they are now and will be."""
        return self._held.get(subscriber, {}).keys()

    def hold(self, subscriber: str, held: Held) -> bool:
        """Notes a subscription; False when it was held before.

        Then it goes on from where it was. A broker that does not hold it yet, because the subscriber has just come,
        would begin it later: whatever is between would be nobody's.
        """
        mine = self._held.setdefault(subscriber, {})
        before = mine.get(held.subscription)
        if before and before.incarnation == held.incarnation:
            held = replace(held, cursor=before.cursor)
        mine[held.subscription] = held
        if before != held:
            self._outbox.write(PutHeld(subscriber, held))
        return before is None

    def drop(self, subscriber: str, subscription: int) -> bool:
        """Notes that a subscription was given up; False when it was not held."""
        if self._held.get(subscriber, {}).pop(subscription, None) is None:
            return False
        self._outbox.write(DropHeld(subscriber, subscription))
        return True

    def advance(self, subscriber: str, cursors: Cursors, broker: str) -> None:
        """Notes how far a subscriber is, by the word of a broker: the one it is on, comes to, or has left last.

        Under another incarnation than before only its own broker's word counts: another's may be of long ago. Where
        somebody of this name was removed before, another's may be of them.
        """
        mine, assignment = self._held.get(subscriber, {}), self.get(subscriber)
        if assignment.registration and broker != assignment.broker:
            return
        own = broker in (assignment.broker, assignment.destination)
        if not own and self._left.get(subscriber) != broker:
            return
        told = {key: from_wire(cursor, mine[key].incarnation) for key, cursor in cursors.items() if key in mine}
        news = {key: cursor for key, cursor in told.items() if _is_news(mine[key], cursor, own)}
        for subscription, cursor in news.items():
            held = mine[subscription]
            mine[subscription] = replace(held, cursor=cursor.execution, incarnation=cursor.incarnation)
        if news:
            self._outbox.write(PutCursors(subscriber, news))

    def _settle(self, assignment: Assignment) -> None:
        if assignment.broker is not None:
            self._on.setdefault(assignment.broker, {})[assignment.subscriber] = None


def _is_news(held: Held, cursor: Cursor, own: bool) -> bool:
    if cursor.incarnation == held.incarnation:
        return cursor.execution > held.cursor
    return own
