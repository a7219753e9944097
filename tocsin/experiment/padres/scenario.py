"""The set-ups of the PADRES evaluation: brokers of unequal speed, publishers of stock quotes, and subscribers who join.

Pure and seeded: who joins where, when and for what, and what is published when. Nothing here runs a broker. Where the
paper says nothing, or has it in a picture only, what is chosen is said beside it and in ``docs/experiments.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from random import Random
from typing import Final, NamedTuple

from tocsin.apps.stocks.interests import draw_interest
from tocsin.apps.stocks.quotes import Quote, Quotes
from tocsin.content.filter import Filter
from tocsin.errors import InvalidError

PUBLISHERS: Final = 40
SUBSCRIBERS: Final = 2000
PUBLISHING_FROM: Final = 5.0
JOINING_FROM, JOINING_UNTIL = 10.0, 1010.0
MOST_PER_MINUTE: Final = 60.0


@dataclass(frozen=True)
class BrokerMachine:
    """What a broker runs on: the processor in MHz, the memory in MB, the bandwidth to send in Mb/s."""

    megahertz: float
    megabytes: float
    megabits: float

    def times(self, factor: float) -> BrokerMachine:
        """So many times as powerful, in every respect."""
        return BrokerMachine(factor * self.megahertz, factor * self.megabytes, factor * self.megabits)

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return self.megabits * 1e6 / 8

    @property
    def memory_bytes(self) -> float:
        """Bytes."""
        return self.megabytes * 1e6


class BrokerSite(NamedTuple):
    """A broker of a set-up. An edge has a ``head``; a head may dial another one, its ``parent``."""

    name: str
    machine: BrokerMachine
    head: str = ""
    parent: str = ""

    @property
    def is_edge(self) -> bool:
        """Whether it serves subscribers."""
        return bool(self.head)


class QuotePublisher(NamedTuple):
    """Publishes the quotes of one symbol, one after the other, at even intervals.

    ``rate`` is in publications per second, ``phase`` the part of an interval that it waits before the first. One that
    is ``doubled`` has twice that rate from a moment on.
    """

    name: str
    symbol: str
    rate: float
    phase: float
    doubled: bool


class QuoteSubscriber(NamedTuple):
    """Joins a broker at a time, in seconds from the beginning. A ``silent`` one asks for what nobody publishes."""

    name: str
    at: float
    broker: str
    filter: Filter
    silent: bool


class QuotePublication(NamedTuple):
    """What is published at a time."""

    at: float
    publisher: str
    content: Quote


@dataclass(frozen=True)
class QuoteScenario:
    """A set-up of the evaluation: all of it follows from its seed and the quotes.

    Args:
        brokers: heads first, each after the one that it dials.
        published_to: the head that all publishers publish to.
        doubled_at: when half of the publishers begin to publish twice as much.
        seconds: how long it lasts.
    """

    brokers: Sequence[BrokerSite]
    published_to: str
    publishers: Sequence[QuotePublisher]
    subscribers: Sequence[QuoteSubscriber]
    quotes: Quotes
    doubled_at: float
    seconds: float

    @property
    def heads(self) -> list[BrokerSite]:
        """The brokers that serve no subscribers."""
        return [site for site in self.brokers if not site.is_edge]

    @property
    def edges(self) -> list[BrokerSite]:
        """The brokers that do."""
        return [site for site in self.brokers if site.is_edge]

    @cached_property
    def joined_at(self) -> float:
        """When the last subscriber joins."""
        return max((each.at for each in self.subscribers), default=0.0)

    def rate(self, publisher: QuotePublisher, at: float) -> float:
        """Publications per second of a publisher at a time."""
        if at < PUBLISHING_FROM:
            return 0.0
        return publisher.rate * (2.0 if publisher.doubled and at >= self.doubled_at else 1.0)

    def publications(self) -> Iterator[QuotePublication]:
        """Everything that is published, in the order of time."""
        return merge(*map(self._of, self.publishers), key=lambda each: each.at)

    def _of(self, publisher: QuotePublisher) -> Iterator[QuotePublication]:
        """A publisher's own. Quotes come in the order of their days, and again from the first."""
        days = self.quotes.by_symbol[publisher.symbol]
        at, day = PUBLISHING_FROM + publisher.phase / publisher.rate, 0
        while at < self.seconds:
            yield QuotePublication(at, publisher.name, days[day % len(days)])
            at, day = at + 1 / self.rate(publisher, at), day + 1


B1: Final = BrokerMachine(100, 64, 0.6)
LOCAL_FACTORS: Final = (1, 2, 4, 10)
"""How powerful B1 to B4 are, in multiples of B1."""
LOCAL_MEGAHERTZ: Final = sum(LOCAL_FACTORS) * B1.megahertz
LOCAL_HEAD: Final = BrokerMachine(2000, 256, 10)
GLOBAL_HEAD: Final = BrokerMachine(3000, 1000, 10)
GLOBAL_EDGES: Final = (BrokerMachine(200, 64, 1.2), BrokerMachine(400, 128, 2.4))
"""Figure 5b is a picture that the paper's text does not have: these are chosen, the same in every cluster."""
SCALE_HEAD: Final = BrokerMachine(2000, 512, 10)
SCALE_EDGE: Final = BrokerMachine(500, 128, 3)


@dataclass(frozen=True)
class ScenarioSize:
    """How much of it there is; by default, as much as in the paper. Times are in seconds."""

    subscribers: int = SUBSCRIBERS
    publishers: int = PUBLISHERS
    silent: float = 0.25
    joining_until: float = JOINING_UNTIL
    doubled_at: float = 3000.0
    seconds: float = 4000.0


LOCAL: Final = ScenarioSize()
GLOBAL: Final = ScenarioSize(silent=0.2, doubled_at=8000.0, seconds=10_000.0)


def local_scenario(seed: int, quotes: Quotes, size: ScenarioSize = LOCAL) -> QuoteScenario:
    """One cluster of four unequal edges, B1 to B4; everybody joins the weakest."""
    head = BrokerSite("B0", LOCAL_HEAD)
    edges = [BrokerSite(f"B{at}", B1.times(factor), "B0") for at, factor in enumerate(LOCAL_FACTORS, 1)]
    return _scenario(seed, quotes, size, [head, *edges])


def global_scenario(seed: int, quotes: Quotes, size: ScenarioSize = GLOBAL) -> QuoteScenario:
    """Four clusters in a chain, B1x to B4x, of two edges each; everybody joins B11."""
    return _scenario(seed, quotes, size, _chain(4, GLOBAL_HEAD, GLOBAL_EDGES))


def edges_scenario(seed: int, quotes: Quotes, edges: int, size: ScenarioSize = LOCAL) -> QuoteScenario:
    """One cluster of so many equal edges; everybody joins the first."""
    head = BrokerSite("B0", SCALE_HEAD)
    return _scenario(
        seed, quotes, size, [head, *(BrokerSite(f"B{at}", SCALE_EDGE, "B0") for at in range(1, edges + 1))]
    )


def clusters_scenario(seed: int, quotes: Quotes, clusters: int, size: ScenarioSize = GLOBAL) -> QuoteScenario:
    """So many clusters in a chain, of two equal edges each; everybody joins the first edge of the first."""
    return _scenario(seed, quotes, size, _chain(clusters, SCALE_HEAD, (SCALE_EDGE, SCALE_EDGE)))


def _chain(clusters: int, head: BrokerMachine, edges: Sequence[BrokerMachine]) -> list[BrokerSite]:
    heads = [BrokerSite(f"B{at}0", head, parent=f"B{at - 1}0" if at > 1 else "") for at in range(1, clusters + 1)]
    return [
        *heads,
        *(
            BrokerSite(f"B{at}{number}", machine, f"B{at}0")
            for at in range(1, clusters + 1)
            for number, machine in enumerate(edges, 1)
        ),
    ]


def _scenario(seed: int, quotes: Quotes, size: ScenarioSize, brokers: list[BrokerSite]) -> QuoteScenario:
    """Publishers at the first head, and subscribers who join the first edge."""
    random = Random(seed)
    if len(quotes.symbols) < size.publishers:
        raise InvalidError(
            f"{size.publishers} publishers need a symbol each, and there are quotes of {len(quotes.symbols)} only"
        )
    symbols = random.sample(quotes.symbols, size.publishers)
    published = Quotes({symbol: quotes.by_symbol[symbol] for symbol in symbols})
    return QuoteScenario(
        brokers,
        brokers[0].name,
        _publishers(random, symbols),
        _subscribers(random, published, size, next(site.name for site in brokers if site.is_edge)),
        published,
        size.doubled_at,
        size.seconds,
    )


def _publishers(random: Random, symbols: list[str]) -> list[QuotePublisher]:
    """Each of its own symbol. Half of them, by lot, are doubled."""
    doubled = set(random.sample(symbols, len(symbols) // 2))
    return [
        QuotePublisher(
            f"publisher-{symbol}",
            symbol,
            # Above 0, which would never publish.
            (1 - random.random()) * MOST_PER_MINUTE / 60,
            random.random(),
            symbol in doubled,
        )
        for symbol in symbols
    ]


def _subscribers(random: Random, published: Quotes, size: ScenarioSize, broker: str) -> list[QuoteSubscriber]:
    """In the order in which they join; just as many are silent as are to be."""
    silent = set(random.sample(range(size.subscribers), round(size.silent * size.subscribers)))
    times = sorted(random.uniform(JOINING_FROM, size.joining_until) for _ in range(size.subscribers))
    return [
        QuoteSubscriber(f"s{at}", time, broker, draw_interest(random, published, at in silent), at in silent)
        for at, time in enumerate(times)
    ]
