"""Asking brokers to prepare: never more at a time than a broker can take in, however many people it is about."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf

from tocsin.coordinator.assignments import Assignments
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.outbox import TransactionalOutbox
from tocsin.coordinator.registry import BrokerRegistry
from tocsin.model.coordination import Prepare
from tocsin.model.parts import parts, size, with_more

Stay = tuple[str, int]


@dataclass
class PreparationQueue:
    """What one broker is to be asked, first for those who wait, and of what was asked the bytes and until when an
    answer is awaited."""

    urgent: deque[Stay] = field(default_factory=deque)
    others: deque[Stay] = field(default_factory=deque)
    asked: dict[Stay, tuple[int, float]] = field(default_factory=dict)
    bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.urgent or self.others)

    @property
    def until(self) -> float:
        """When the first answer is not awaited any more."""
        return next((until for _, until in self.asked.values()), inf)

    def next(self) -> Stay:
        """Whom to ask for now."""
        return (self.urgent or self.others).popleft()

    def settle(self, stay: Stay) -> None:
        """No answer is awaited any more."""
        self.bytes -= self.asked.pop(stay, (0, 0.0))[0]

    def expire(self, now: float) -> None:
        """Answers that should have come by now are awaited no more; what was asked first is first due."""
        while self.until <= now:
            self.settle(next(iter(self.asked)))


class Preparations:
    """Sends every ``Prepare``; what each says is looked up when it is sent. ``now`` is the time of the event at hand.

    What can go wrong: the broker has no link, or loses it (all is forgotten, for its next ``Hello`` tells what to ask);
    it does not answer (after a while it counts as answered); a stay is over before it was asked for (left out).
    """

    def __init__(
        self, registry: BrokerRegistry, assignments: Assignments, outbox: TransactionalOutbox, limits: CoordinatorLimits
    ) -> None:
        self._registry, self._assignments, self._outbox, self._limits = registry, assignments, outbox, limits
        self._queues: dict[str, PreparationQueue] = {}
        # Of those, the ones with something left to ask, once answers have come.
        self._waiting: dict[str, PreparationQueue] = {}
        self.now = 0.0

    def ask(self, broker: str | None, subscriber: str, stay: int) -> None:
        """Asks for somebody who waits for it."""
        if broker is not None and self._registry.link(broker) is not None:
            self._queue(broker).urgent.append((subscriber, stay))
            self._advance(broker)

    def remind(self, broker: str | None, subscriber: str, stay: int) -> None:
        """Asks after all those who wait."""
        if broker is not None and self._registry.link(broker) is not None:
            self._queue(broker).others.append((subscriber, stay))
            self._advance(broker)

    def answered(self, broker: str, subscriber: str, stay: int) -> None:
        """A broker has said whether it is prepared."""
        queue = self._queues.get(broker)
        if queue is not None:
            queue.settle((subscriber, stay))
            self._advance(broker)

    def forget(self, broker: str) -> None:
        """The broker's link is another, or none."""
        self._queues.pop(broker, None)
        self._waiting.pop(broker, None)

    def expire(self) -> None:
        """Goes on where no answer has come in time."""
        for broker in list(self._waiting):
            self._advance(broker)

    def wake(self) -> float:
        """When one that waits for others' answers need not wait any more."""
        return min(queue.until for queue in self._waiting.values()) if self._waiting else inf

    def _queue(self, broker: str) -> PreparationQueue:
        queue = self._queues.get(broker)
        if queue is None:
            queue = self._queues[broker] = PreparationQueue()
        return queue

    def _advance(self, broker: str) -> None:
        queue, most = self._queue(broker), self._limits.preparing_bytes
        queue.expire(self.now)
        while queue and queue.bytes < most:
            subscriber, stay = queue.next()
            if self._assignments.belongs(subscriber, stay, broker):
                weight = self._send(broker, subscriber, stay)
                before = queue.asked.pop((subscriber, stay), (0, 0.0))[0]
                queue.asked[subscriber, stay] = (before + weight, self.now + self._limits.preparing)
                queue.bytes += weight
        if queue:
            self._waiting[broker] = queue
        else:
            self._waiting.pop(broker, None)

    def _send(self, broker: str, subscriber: str, stay: int) -> int:
        link, registration = self._registry.link(broker), self._assignments.get(subscriber).registration
        held = self._assignments.subscriptions_of(subscriber)
        weights = {each.subscription: size(each) for each in held}
        for part, more in with_more(parts(held, lambda each: weights[each.subscription])):
            self._outbox.send(link, Prepare(subscriber, stay, part, more, registration))
        return len(subscriber) + sum(weights.values())
