"""Who is connected, who was until lately, and who is away: the last weigh nothing, and some day are removed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from math import ceil, inf
from typing import Final

from msgspec.structs import replace

from tocsin.coordinator.assignments import Assignments
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.outbox import TransactionalOutbox
from tocsin.coordinator.registry import BrokerMember, BrokerRegistry
from tocsin.coordinator.workload import NamedWorkload

HOUR: Final = 3600.0
AT_ONCE: Final = 500
"""So many are dealt with by one tick, so that nobody waits for a hundred thousand who have not come."""
PAUSE: Final = 1.0
"""So many are stored at once, and then none for so long."""


class PresenceTracker:
    """Keeps everybody in one of three queues: connected, leaving, away. Each is in the order of time.

    Whoever loses their connection, or their broker its link, is leaving: they weigh as before, so that a reconnection
    changes nothing. After the time of grace they are away. A connection makes them weigh at once, and so does the
    question where to connect, for a time of grace: but once, until they were connected. Whoever asks again and again
    and never comes is sent nothing. After a start nobody is known to be connected, and all are leaving.

    When somebody was last seen is stored when it was stored an hour ago or longer. Whoever asks was seen.

    What can go wrong: a broker speaks of those who are not its own (passed over), or of somebody who has gone elsewhere
    since (what their own broker says counts).
    """

    def __init__(
        self,
        registry: BrokerRegistry,
        assignments: Assignments,
        workload: NamedWorkload,
        outbox: TransactionalOutbox,
        limits: CoordinatorLimits,
        now: float,
    ) -> None:
        self._registry, self._assignments, self._workload = registry, assignments, workload
        self._outbox, self._limits = outbox, limits
        # Of a dict that was once large, the first is slow to find after many that were taken out.
        self._connected: OrderedDict[str, float] = OrderedDict()
        self._away: OrderedDict[str, None] = OrderedDict()
        # Who has asked where to connect since they were last connected.
        self._asked: set[str] = set()
        self._now = self._stored_at = now
        until = now + max(limits.presence, limits.returning)
        everybody = sorted(assignments.all(), key=lambda assignment: assignment.seen or inf)
        self._leaving = OrderedDict((assignment.subscriber, until) for assignment in everybody)

    def away(self, subscriber: str) -> bool:
        """Whether somebody has not been here for longer than the time of grace."""
        return subscriber in self._away

    def connected(self, now: float, member: BrokerMember, subscribers: Iterable[str]) -> None:
        """A broker says that these are connected to it."""
        for subscriber in subscribers:
            if self._belongs(subscriber, member):
                member.online[subscriber] = None
                self._come(subscriber)
                self._asked.discard(subscriber)
                self._leaving.pop(subscriber, None)
                if self._connected.setdefault(subscriber, now) == now:
                    self._see(now, subscriber, now - HOUR)

    def disconnected(self, now: float, member: BrokerMember, subscribers: Iterable[str]) -> None:
        """A broker says that these no longer are."""
        for subscriber in subscribers:
            if subscriber in member.online:
                del member.online[subscriber]
                self._left(now, subscriber)

    def lost(self, now: float, member: BrokerMember) -> None:
        """Nobody knows who is connected to a broker any more."""
        self.disconnected(now, member, list(member.online))

    def registered(self, now: float, subscriber: str) -> None:
        """Somebody is given a token, who may be known already, and comes some day."""
        self._see(now, subscriber, now - HOUR)
        if not any(subscriber in queue for queue in (self._connected, self._leaving, self._away)):
            self._leave(now, subscriber)

    def asked(self, now: float, subscriber: str) -> None:
        """Somebody asks where to connect, and so will be connected soon, unless it has asked in vain before."""
        self._see(now, subscriber, now - HOUR)
        if subscriber in self._away and subscriber in self._asked:
            self._away.move_to_end(subscriber)
        elif subscriber not in self._connected and subscriber not in self._asked:
            self._asked.add(subscriber)
            self._come(subscriber)
            self._leave(now, subscriber)

    def arrived(self, now: float, subscriber: str) -> None:
        """Somebody has logged in where it was to; that it is connected its broker says soon."""
        self._see(now, subscriber, now - HOUR)
        self._asked.discard(subscriber)
        self._come(subscriber)
        if subscriber not in self._connected:
            self._leave(now, subscriber)

    def forget(self, subscriber: str) -> None:
        """Somebody is no more."""
        for queue in (self._connected, self._leaving, self._away):
            queue.pop(subscriber, None)
        self._asked.discard(subscriber)
        for member in self._registry:
            member.online.pop(subscriber, None)

    def due(self, now: float) -> None:
        """Does what time brings: those whose time of grace is over weigh nothing."""
        self._now = now
        over = _first(self._leaving, now)
        for subscriber in over:
            del self._leaving[subscriber]
            self._away[subscriber] = None
            self._see(now, subscriber, 0.0)
        self._workload.suspend(over)
        if now >= self._stored_at + PAUSE:
            self._store(now)
        self._assignments.forget(now, AT_ONCE)

    def _store(self, now: float) -> None:
        """Stores of those who stay connected that they do. All may be due at once, since they came back together."""
        self._stored_at = now
        for subscriber in _first(self._connected, now - HOUR):
            del self._connected[subscriber]
            self._connected[subscriber] = now
            self._see(now, subscriber, now - HOUR)

    def next_expired(self, now: float) -> list[str]:
        """Who has not come for so long that they are to be removed, some of them."""
        if self._outbox.full or not self._limits.expiry:
            return []
        found: list[str] = []
        for subscriber in islice(self._away, AT_ONCE):
            if self._expires_at(subscriber) > now:
                break
            found.append(subscriber)
        return found

    def wake(self) -> float:
        """When something is due. What was left for the next tick is due at once."""
        soonest = self._assignments.forgotten_at()
        if self._leaving:
            soonest = min(soonest, next(iter(self._leaving.values())))
        if self._connected:
            soonest = min(soonest, max(next(iter(self._connected.values())) + HOUR, self._stored_at + PAUSE))
        if self._away and not self._outbox.full:
            soonest = min(soonest, self._expires_at(next(iter(self._away))))
        return max(soonest, self._now)

    def _expires_at(self, subscriber: str) -> float:
        return self._assignments.get(subscriber).seen + self._limits.expiry if self._limits.expiry else inf

    def _belongs(self, subscriber: str, member: BrokerMember) -> bool:
        assignment = self._assignments.get(subscriber)
        return member.name in (assignment.broker, assignment.destination)

    def _come(self, subscriber: str) -> None:
        """Somebody who was away weighs again."""
        if subscriber in self._away:
            del self._away[subscriber]
            self._workload.resume(subscriber, self._assignments.numbers_of(subscriber))

    def _left(self, now: float, subscriber: str) -> None:
        assignment = self._assignments.get(subscriber)
        brokers = [name for name in (assignment.broker, assignment.destination) if self._registry.alive(name)]
        if any(subscriber in self._registry.member(str(name)).online for name in brokers):
            return
        if self._connected.pop(subscriber, None) is not None:
            self._see(now, subscriber, now - HOUR)
        self._leave(now, subscriber)

    def _leave(self, now: float, subscriber: str) -> None:
        if subscriber in self._assignments and subscriber not in self._away:
            self._leaving.pop(subscriber, None)
            # Whole seconds, so that those who leave together are dealt with together.
            self._leaving[subscriber] = ceil(now + self._limits.presence)

    def _see(self, now: float, subscriber: str, since: float) -> None:
        """Stores that somebody was there, if nothing is known of them since then. In a store that is behind it can
        wait, unless nothing is known of them at all."""
        assignment = self._assignments.get(subscriber)
        waits = self._outbox.full and assignment.seen
        if subscriber in self._assignments and assignment.seen <= since and not waits:
            self._assignments.put(replace(assignment, seen=now))


def _first(queue: dict[str, float], time: float) -> list[str]:
    """Those at the head of a queue whose time is no later, some of them."""
    found: list[str] = []
    for subscriber, at in islice(queue.items(), AT_ONCE):
        if at > time:
            break
        found.append(subscriber)
    return found
