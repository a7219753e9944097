"""The two brokers of a session as they would be: what each choice costs the one and relieves the other."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

from tocsin.content.filter import Filter
from tocsin.content.poset import Poset
from tocsin.overlay.load import BrokerLoad, Metric
from tocsin.overlay.profile import Profile
from tocsin.overlay.tuning import Trigger, Tuning

_CardKey = tuple[int, int, bool, Metric, "Enough", int | None]
_LOOK: Final = 0.02

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
        staying: filters of subscribers who stay whatever is chosen, some of which others hold who may go.
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
        staying: Iterable[Filter] = (),
    ) -> None:
        self.own, self.other, self.tuning, self._bound = own, other, tuning, bound
        self.chosen: list[tuple[Filter, Sequence[str]]] = []
        self._held, self._order, self._profile = held, order, profile
        self._before = own, other
        self._received = profile.received
        self._bits = _Bits(profile.vector(filter) for filter in chain(held, staying))
        self._left = {filter: None for filter in order if filter in held}
        # By how many parents each is still covered: those that may be chosen, or are covered by one that may.
        self._above = {filter: len(order.parents(filter)) for filter in order}
        self._top: dict[Filter, None] = {}
        self._surface(order.covering_set())
        # With a filter, all that it covers is covered.
        self._covered: set[Filter] = set()
        for filter in order:
            if filter not in self._covered and profile.covers(filter):
                self._cover(filter)
        # Report cards made; a look at one that was made, or at what it would reduce, counts as a small part.
        self._work = 0.0
        self._cards: dict[_CardKey, ReportCard | None] = {}
        self._balances = {metric: self._make_balances(metric) for metric in Metric}

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
        return [filter for filter in self._left if filter in self._covered]

    @property
    def uncovered(self) -> list[Filter]:
        """The others."""
        return [filter for filter in self._left if filter not in self._covered]

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
        return self._balances[metric]

    def bandwidth(self, filter: Filter) -> float:
        """Bytes per second for each subscriber."""
        return self._profile.bandwidth(filter)

    def added_rate(self, filter: Filter) -> float:
        """Publications per second that the acceptor would receive besides."""
        return self._profile.added_rate(filter, self._received)

    def reducible(self, filter: Filter) -> float:
        """Publications per second that the offloader would receive no more, if all subscribers went."""
        self._work += _LOOK
        return self._profile.rate(self._profile.vector(filter) & self._bits.single)

    def card(self, filter: Filter, metric: Metric, enough: Enough, most: int | None = None) -> ReportCard | None:
        """A filter's report card: with as few subscribers as are enough, and no more than the acceptor can bear.

        With ``most``, no more than so many of them, even if that is not enough. None, too, when so many cards have been
        made that the broker has other things to do: then what was chosen so far has to do.
        """
        if self._work >= self.tuning.report_cards:
            return None
        self._work += _LOOK
        # Filters that matched the same samples, for as many subscribers, differ in nothing else.
        covered, every = filter in self._covered, len(self._held[filter])
        key = self._profile.vector(filter), every, covered, metric, enough, most
        if key not in self._cards:
            self._work += 1
            self._cards[key] = self._card(filter, metric, enough, every if most is None else most)
        card = self._cards[key]
        return card and card._replace(filter=filter)

    def _card(self, filter: Filter, metric: Metric, enough: Enough, most: int) -> ReportCard | None:
        after, counts = self._estimates(filter), range(1, most + 1)
        wanted = min(bisect_left(counts, True, key=lambda count: enough(*after(count))) + 1, len(counts))
        borne = bisect_left(counts, True, key=lambda count: self._is_too_much(metric, *after(count)))
        subscribers = min(wanted, borne)
        own, other = after(subscribers)
        if not subscribers or self._upsets(metric, own, other):
            return None
        return ReportCard(
            filter,
            subscribers,
            self._difference(own, other, metric),
            filter in self._covered,
            self.reducible(filter) if subscribers == len(self._held[filter]) else 0.0,
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
        self._cards.clear()
        self._withdraw(filter)
        return self._cover(filter)

    def _withdraw(self, filter: Filter) -> None:
        """It is not chosen again; what nothing else covers is at the top now."""
        del self._left[filter]
        if filter in self._top:
            del self._top[filter]
            self._surface([filter])

    def _surface(self, filters: Iterable[Filter]) -> None:
        """Nothing that may be chosen covers these: each is at the top, or what it covers may be."""
        waiting = deque(filters)
        while waiting:
            filter = waiting.popleft()
            if filter in self._left:
                self._top[filter] = None
                continue
            for child in self._order.children(filter):
                self._above[child] -= 1
                if not self._above[child]:
                    waiting.append(child)

    def _cover(self, filter: Filter) -> bool:
        """The acceptor covers it, and with it all that it covers; whether any of that may be chosen, and is new."""
        waiting, newly = [filter], False
        while waiting:
            each = waiting.pop()
            if each not in self._covered:
                self._covered.add(each)
                newly = newly or each in self._left
                waiting += self._order.children(each)
        return newly

    def _estimates(self, filter: Filter) -> Callable[[int], tuple[BrokerLoad, BrokerLoad]]:
        """The two brokers by how many of a filter's subscribers go."""
        bandwidth, comes = self.bandwidth(filter), self.added_rate(filter)
        leaves, every = self.reducible(filter), len(self._held[filter])

        @cache
        def after(count: int) -> tuple[BrokerLoad, BrokerLoad]:
            own = self.own.change(-leaves if count == every else 0.0, -count * bandwidth, -count)
            return own, self.other.change(comes, count * bandwidth, count)

        return after

    def _is_too_much(self, metric: Metric, own: BrokerLoad, other: BrokerLoad) -> bool:
        return self.tuning.exceeds_lower(other.ratios) or self._upsets(metric, own, other)

    def _make_balances(self, metric: Metric) -> Enough:
        return lambda own, other: self._difference(own, other, metric) <= self.tuning.balanced

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
