"""The two brokers of a session as they would be: what each choice costs the one and relieves the other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tocsin.content.filter import Filter
from tocsin.content.poset import Poset
from tocsin.overlay.load import BrokerLoad, Metric
from tocsin.overlay.profile import Profile
from tocsin.overlay.tuning import Trigger, Tuning

Enough = Callable[[BrokerLoad, BrokerLoad], bool]
"""Whether nothing more need be offloaded, when the two are loaded like this."""


class ReportCard(NamedTuple):
    """What offloading a filter's subscribers would do.

    Args:
        subscribers: how many of them are to go.
        difference: of the metric of interest afterwards; negative if the offloader has less then.
        covered: whether the acceptor's covering set covers it.
        reduced: publications per second that the offloader receives no more.
        bandwidth: bytes per second that each subscriber takes.
        own: the offloader as estimated afterwards.
        other: the acceptor.
    """

    filter: Filter
    subscribers: int
    difference: float
    covered: bool
    reduced: float
    bandwidth: float
    own: BrokerLoad
    other: BrokerLoad


class Exchange:
    """What an offload algorithm decides on, and what it has chosen so far.

    Args:
        held: the filters that may be chosen, each with its subscribers.
        order: all of the offloader's filters by covering; it is only looked at.
        own: the offloader.
        other: the acceptor, as it said itself.
        bound: how much more than the offloader the acceptor may get of other metrics than the one that is made even,
            unless that gets more even by more than others get uneven; without a bound, whatever does not overload it.
    """

    def __init__(
        self,
        held: Mapping[Filter, Sequence[str]],
        order: Poset,
        profile: Profile,
        own: BrokerLoad,
        other: BrokerLoad,
        tuning: Tuning,
        bound: Trigger | None = None,
    ) -> None:
        self.own, self.other, self.tuning, self._bound = own, other, tuning, bound
        self.chosen: list[tuple[Filter, Sequence[str]]] = []
        self._held, self._order, self._profile = held, order, profile
        self._before = own, other
        self._received = profile.received
        self._bits = _Bits(profile.vector(filter) for filter in held)
        # What may still be chosen, with whether the acceptor's covering set covers it.
        self._left = {filter: profile.covering.is_covered(filter) for filter in order}
        self._top = dict.fromkeys(order.covering_set())
        for filter in order:
            if filter not in held:
                self._withdraw(filter)

    @property
    def left(self) -> list[Filter]:
        """The filters that may still be chosen."""
        return list(self._left)

    @property
    def top(self) -> list[Filter]:
        """The covering set of those."""
        return list(self._top)

    @property
    def covered(self) -> list[Filter]:
        """Those that the acceptor's covering set covers, with what was chosen."""
        return [filter for filter, covered in self._left.items() if covered]

    @property
    def uncovered(self) -> list[Filter]:
        """The others."""
        return [filter for filter, covered in self._left.items() if not covered]

    def difference(self, metric: Metric) -> float:
        """By how much the offloader has more, at present."""
        return self._difference(self.own, self.other, metric)

    def improves(self, metric: Metric) -> bool:
        """Whether what was chosen makes a difference smaller by so much that it counts."""
        return abs(self._difference(*self._before, metric)) - abs(self.difference(metric)) > self.tuning.balanced

    def is_balanced(self, metric: Metric) -> bool:
        """Whether the two are even within the balanced threshold, or the offloader has less."""
        return self.difference(metric) <= self.tuning.balanced

    def balances(self, metric: Metric) -> Enough:
        """The same of any two loads."""
        return lambda own, other: self._difference(own, other, metric) <= self.tuning.balanced

    def bandwidth(self, filter: Filter) -> float:
        """Bytes per second for each subscriber."""
        return self._profile.bandwidth(filter)

    def added_rate(self, filter: Filter) -> float:
        """Publications per second that the acceptor would receive besides."""
        return self._profile.added_rate(filter, self._received)

    def reducible(self, filter: Filter) -> float:
        """Publications per second that the offloader would receive no more, if all subscribers went."""
        return self._profile.rate(self._profile.vector(filter) & self._bits.single)

    def card(self, filter: Filter, metric: Metric, enough: Enough, most: int | None = None) -> ReportCard | None:
        """A filter's report card: with as few subscribers as are enough, and no more than the acceptor can bear.

        With ``most``, no more than so many of them, even if that is not enough.
        """
        after, every = self._estimates(filter), len(self._held[filter])
        counts = range(1, (every if most is None else most) + 1)
        wanted = min(bisect_left(counts, True, key=lambda count: enough(*after(count))) + 1, len(counts))
        borne = bisect_left(counts, True, key=lambda count: self._is_too_much(metric, *after(count)))
        subscribers = min(wanted, borne)
        own, other = after(subscribers)
        if not subscribers or self._upsets(metric, own, other):
            return None
        reduced = self.reducible(filter) if subscribers == every else 0.0
        return ReportCard(
            filter,
            subscribers,
            self._difference(own, other, metric),
            self._left[filter],
            reduced,
            self.bandwidth(filter),
            own,
            other,
        )

    def take(self, card: ReportCard) -> bool:
        """Chooses what a report card says; whether the acceptor covers more of what is left than before."""
        filter, vector = card.filter, self._profile.vector(card.filter)
        self.chosen.append((filter, self._held[filter][: card.subscribers]))
        self.own, self.other = card.own, card.other
        self._received |= vector
        if card.subscribers == len(self._held[filter]):
            self._bits.remove(vector)
        self._withdraw(filter)
        newly = [each for each, covered in self._left.items() if not covered and filter.covers(each)]
        self._left.update(dict.fromkeys(newly, True))
        return bool(newly)

    def _withdraw(self, filter: Filter) -> None:
        """It is not chosen again; what nothing else covers is at the top now."""
        del self._left[filter]
        self._top.pop(filter, None)
        for child in self._order.children(filter):
            if child in self._left and self._is_top(child):
                self._top[child] = None

    def _is_top(self, filter: Filter) -> bool:
        return not any(parent in self._left or not self._is_top(parent) for parent in self._order.parents(filter))

    def _estimates(self, filter: Filter) -> Callable[[int], tuple[BrokerLoad, BrokerLoad]]:
        """The two brokers by how many of a filter's subscribers go."""
        bandwidth, comes = self.bandwidth(filter), self.added_rate(filter)
        leaves, every = self.reducible(filter), len(self._held[filter])

        def after(count: int) -> tuple[BrokerLoad, BrokerLoad]:
            own = self.own.change(-leaves if count == every else 0.0, -count * bandwidth, -count)
            return own, self.other.change(comes, count * bandwidth, count)

        return after

    def _is_too_much(self, metric: Metric, own: BrokerLoad, other: BrokerLoad) -> bool:
        return self.tuning.exceeds_lower(other.ratios) or self._upsets(metric, own, other)

    def _upsets(self, levelled: Metric, own: BrokerLoad, other: BrokerLoad) -> bool:
        """Whether the acceptor gets so much more of another metric that it would have to send somebody back for it."""
        if self._bound is None:
            return False
        gained = abs(self._difference(*self._before, levelled)) - abs(self._difference(own, other, levelled))
        for metric in Metric:
            turned = -self._difference(own, other, metric)
            grown = turned - max(0.0, -self._difference(*self._before, metric))
            if metric is not levelled and turned > self._bound.of(metric) and grown > self.tuning.upset * gained:
                return True
        return False

    def _difference(self, own: BrokerLoad, other: BrokerLoad, metric: Metric) -> float:
        return own.metrics.difference(metric, other.metrics, self.tuning.normal_delay)


class _Bits:
    """How many vectors have each bit; ``single`` are those that only one has."""

    def __init__(self, vectors: Iterable[int]) -> None:
        self._counts: dict[int, int] = {}
        self.single = 0
        for vector in vectors:
            self._count(vector, 1)

    def remove(self, vector: int) -> None:
        """One vector less."""
        self._count(vector, -1)

    def _count(self, vector: int, change: int) -> None:
        while vector:
            bit = vector & -vector
            vector ^= bit
            self._counts[bit] = self._counts.get(bit, 0) + change
            self.single = self.single | bit if self._counts[bit] == 1 else self.single & ~bit
