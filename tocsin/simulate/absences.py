"""What subscribers miss while they are away, and what it takes a broker to give it to them."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from tocsin.broker.holdings import FrontendSubscription, Stay
from tocsin.model.weight import weight
from tocsin.simulate.cluster import DataClusterModel
from tocsin.simulate.sizes import Sizes
from tocsin.simulate.weightcache import WeightCache


class Delivered(NamedTuple):
    """Bytes in, bytes out, and how many deliveries these are."""

    incoming: int = 0
    outgoing: int = 0
    deliveries: int = 0


class Absences:
    """Who is away from all brokers of a system, and what each had been given of what it holds.

    Of a live subscription nothing is missed. What a broker's cache has lost it pulls: first of one BE subscription, and
    then of all others of the channel together, from where the one that is furthest behind goes on.
    """

    def __init__(self, cluster: DataClusterModel, sizes: Sizes) -> None:
        self._cluster, self._sizes = cluster, sizes
        self._stays: dict[str, Stay] = {}
        self._given: dict[str, dict[int, int]] = {}

    def begin(self, stay: Stay) -> None:
        """A subscriber's connection is gone; it is away unless it has moved and is served elsewhere by now."""
        if self._stays.get(stay.subscriber) is stay:
            self._given[stay.subscriber] = {be: subscription.sent for be, subscription in stay.subscriptions.items()}

    def end(self, stay: Stay, kept: WeightCache) -> Delivered:
        """It is back, perhaps on another broker, which is the one that keeps this: what is brought and given now."""
        self._stays[stay.subscriber] = stay
        given, lost = self._given.pop(stay.subscriber, {}), dict[str, list[tuple[FrontendSubscription, int]]]()
        outgoing = deliveries = 0
        for be, subscription in stay.subscriptions.items():
            if subscription.live or be not in given:
                continue
            missed = self._executions_found(be, given[be], subscription.backend.level)
            outgoing, deliveries = outgoing + self._weight(be, missed), deliveries + len(missed)
            cursor = self._cursor(subscription, given[be])
            if cursor < subscription.backend.level and not kept.has(be, cursor):
                lost.setdefault(subscription.backend.channel.name, []).append((subscription, cursor))
        incoming = sum(self._pulled_bytes(each[:1]) + self._pulled_bytes(each[1:]) for each in lost.values())
        return Delivered(incoming, outgoing, deliveries)

    def _cursor(self, subscription: FrontendSubscription, given: int) -> int:
        """The last that it has had, which is earlier than what it was given when nothing was found for a while."""
        had = self._executions_found(subscription.backend.be, subscription.acknowledged, given)
        return had[-1] if had else subscription.acknowledged

    def _pulled_bytes(self, lost: list[tuple[FrontendSubscription, int]]) -> int:
        first = min((cursor for _, cursor in lost), default=0)
        backends = [subscription.backend for subscription, _ in lost]
        return sum(
            self._weight(backend.be, self._executions_found(backend.be, first, backend.level)) for backend in backends
        )

    def _executions_found(self, be: int, after: int, last: int) -> list[int]:
        """The executions that found something."""
        found = self._cluster.found[be]
        return found[bisect_right(found, after) : bisect_right(found, last)]

    def _weight(self, be: int, executions: list[int]) -> int:
        return sum(weight(self._sizes.at(be, execution)) for execution in executions)
