"""The offload algorithms by the paper's words alone, slow and plain: what ours are compared with.

Nothing is kept from one step to the next but which subscribers went: loads, covering sets and vectors are computed anew
from the publications.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.overlay.loads import SIZE, Case
from tocsin.content.filter import Filter
from tocsin.overlay.load import BrokerLoad, Metric


@dataclass
class Naive:
    """An exchange without memory."""

    case: Case
    gone: dict[Filter, int] = field(default_factory=dict)

    @property
    def unit(self) -> float:
        """Publications per second that one sample stands for."""
        samples = self.case.publications[: self.case.tuning.samples]
        return 1 / self.case.seconds if samples else 0.0

    def matched(self, filters: Iterable[Filter]) -> set[int]:
        """The samples that match any of these."""
        wanted = list(filters)
        samples = self.case.publications[: self.case.tuning.samples]
        return {number for number, each in enumerate(samples) if any(filter.matches(each) for filter in wanted)}

    def loads(self, gone: dict[Filter, int]) -> tuple[BrokerLoad, BrokerLoad]:
        """The two brokers when so many subscribers of each have gone."""
        held = self.case.held
        kept = self.matched(filter for filter in held if gone.get(filter, 0) < len(held[filter]))
        fewer = len(self.matched(held)) - len(kept)
        known = self.matched(self.case.covering)
        more = len(self.matched([*self.case.covering, *gone])) - len(known)
        traffic = sum(count * len(self.matched([filter])) for filter, count in gone.items()) * self.unit * SIZE
        number = sum(gone.values())
        own = self.case.own.change(-fewer * self.unit, -traffic, -number)
        return own, self.case.other.change(more * self.unit, traffic, number)

    def with_more(self, filter: Filter, count: int) -> dict[Filter, int]:
        return {**self.gone, filter: count}

    def difference(self, metric: Metric, gone: dict[Filter, int] | None = None) -> float:
        own, other = self.loads(self.gone if gone is None else gone)
        return own.metrics.difference(metric, other.metrics, self.case.tuning.normal_delay)

    def count(self, filter: Filter, enough: Callable[[BrokerLoad, BrokerLoad], bool]) -> int:
        """How many subscribers of a filter go."""
        best = 0
        for count in range(1, len(self.case.held[filter]) + 1):
            own, other = self.loads(self.with_more(filter, count))
            if any(ratio > 0.9 for ratio in other.ratios.values()):
                break
            best = count
            if enough(own, other):
                break
        return best

    def top(self) -> list[Filter]:
        """The covering set of what has not been chosen."""
        left = [filter for filter in self.case.held if filter not in self.gone]
        return [filter for filter in left if not any(other.covers(filter) for other in left if other is not filter)]


def naive_input(case: Case) -> Naive:
    """Section 5.1."""
    naive, metric = Naive(case), Metric.INPUT
    while naive.difference(metric) > case.tuning.balanced:
        choices = {}
        for filter in naive.top():
            count = naive.count(filter, lambda own, other: own.input_ratio - other.input_ratio <= case.tuning.balanced)
            if count:
                choices[filter] = naive.with_more(filter, count)
        best = min((abs(naive.difference(metric, gone)) for gone in choices.values()), default=None)
        if best is None or best >= abs(naive.difference(metric)):
            break
        naive.gone = next(gone for gone in choices.values() if abs(naive.difference(metric, gone)) == best)
    return naive
