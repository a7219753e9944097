"""Random loads, and the exchange of two brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.content.strategies import FILTERS, PUBLICATIONS
from tocsin.content.filter import Filter
from tocsin.content.poset import Poset
from tocsin.content.values import Publication
from tocsin.overlay.exchange import Exchange
from tocsin.overlay.load import BrokerLoad
from tocsin.overlay.profile import Profile
from tocsin.overlay.tuning import Tuning

LOADS = st.builds(
    BrokerLoad,
    incoming=st.floats(0, 100),
    matching_seconds=st.floats(0.0001, 0.05),
    outgoing=st.floats(0, 3000),
    bandwidth=st.sampled_from([1000.0, 2000.0, 5000.0]),
    subscriptions=st.integers(0, 50),
    cpu=st.floats(0, 1),
    memory=st.floats(0, 1000),
    memory_bytes=st.just(1000.0),
    subscription_bytes=st.sampled_from([0.0, 5.0]),
)
SIZE = 100


@dataclass
class Case:
    """All that an exchange is made of."""

    held: Mapping[Filter, Sequence[str]]
    covering: list[Filter]
    publications: Sequence[Publication]
    seconds: float
    own: BrokerLoad
    other: BrokerLoad
    tuning: Tuning

    @property
    def profile(self) -> Profile:
        """What was sampled."""
        profile = Profile(0.0, self.covering, self.tuning)
        for publication in self.publications:
            matched = [filter for filter in self.held if filter.matches(publication)]
            profile.record(self.seconds, publication, matched, SIZE)
        return profile

    @property
    def order(self) -> Poset:
        """The filters by covering."""
        return ordered(self.held)

    @property
    def exchange(self) -> Exchange:
        """Of which nothing is chosen yet."""
        return Exchange(self.held, self.order, self.profile, self.own, self.other, self.tuning)


def ordered(filters: Iterable[Filter]) -> Poset:
    """A poset of filters."""
    order = Poset()
    for filter in filters:
        order.insert(filter)
    return order


@st.composite
def cases(draw: st.DrawFn, own: st.SearchStrategy[BrokerLoad] = LOADS) -> Case:
    """Random ones: few filters over few values, so that much covers much."""
    filters = draw(st.lists(FILTERS, min_size=1, max_size=7, unique=True))
    held = {filter: _names(number, draw(st.integers(1, 4))) for number, filter in enumerate(filters) if filter}
    covering = [filter for filter in draw(st.lists(FILTERS, max_size=3, unique=True)) if filter]
    publications = draw(st.lists(PUBLICATIONS, max_size=12))
    seconds, tuning = draw(st.sampled_from([0.5, 2.0])), Tuning(samples=10)
    return Case(held, list(ordered(covering).covering_set()), publications, seconds, draw(own), draw(LOADS), tuning)


def _names(filter: int, count: int) -> list[str]:
    return [f"s{filter}-{number}" for number in range(count)]
