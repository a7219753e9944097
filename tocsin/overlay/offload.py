"""The three offload algorithms: which subscribers are to go to the other broker of a session.

Each chooses on an :class:`~tocsin.overlay.exchange.Exchange`, whose ``chosen`` is the outcome. They never overload the
acceptor, and end when nothing is left that makes the difference smaller; in an overload, the match algorithm goes on
whatever the difference, until it is relieved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from tocsin.content.filter import Filter
from tocsin.overlay.detection import Algorithm
from tocsin.overlay.exchange import Enough, Exchange, ReportCard
from tocsin.overlay.load import BrokerLoad, Metric, Resource
from tocsin.overlay.tuning import Tuning

METRICS: Final = {
    Algorithm.INPUT: Metric.INPUT,
    Algorithm.MATCH: Metric.DELAY,
    Algorithm.OUTPUT: Metric.OUTPUT,
}
"""What each algorithm makes even."""

_RELIEVED = (Resource.CPU, Resource.INPUT, Resource.MEMORY)


def offload(algorithm: Algorithm, exchange: Exchange, overloaded: bool) -> None:
    """Chooses by an algorithm; ``overloaded``, if it is to relieve an overload."""
    match algorithm:
        case Algorithm.INPUT:
            offload_input(exchange)
        case Algorithm.MATCH:
            offload_match(exchange, overloaded)
        case Algorithm.OUTPUT:
            offload_output(exchange, overloaded)


def offload_input(exchange: Exchange) -> None:
    """Makes input ratios even: of the covering set always what brings their difference closest to zero.

    Only what is in the covering set brings publications that come for nothing else.
    """
    while not exchange.is_balanced(Metric.INPUT):
        card = _closest(exchange, exchange.top, Metric.INPUT, exchange.balances(Metric.INPUT))
        if card is None:
            return
        exchange.take(card)


def offload_match(exchange: Exchange, overloaded: bool = False) -> None:
    """Makes matching delays even, with what has least traffic, so that nothing else changes much.

    When ``overloaded``, it goes on until CPU, input and memory are below the lower thresholds.
    """
    enough = _relieves(exchange.tuning) if overloaded else exchange.balances(Metric.DELAY)
    for filter in sorted(exchange.left, key=lambda each: (exchange.bandwidth(each), exchange.added_rate(each))):
        if enough(exchange.own, exchange.other):
            return
        card = exchange.card(filter, Metric.DELAY, enough)
        if card and not overloaded and not _closer(exchange, card, Metric.DELAY):
            # So many would be too many. One fewer are not enough, and still better than nobody.
            card = exchange.card(filter, Metric.DELAY, enough, most=card.subscribers - 1)
        if card and (overloaded or _closer(exchange, card, Metric.DELAY)):
            exchange.take(card)


def offload_output(exchange: Exchange, overloaded: bool = False) -> None:
    """Makes output ratios even: in phase I with what the acceptor receives already, in phase II with the rest.

    Phase II ends when input ratios are even, so that the input algorithm has nothing to take back; when ``overloaded``,
    it goes on until the output ratio is below the lower threshold.
    """
    goes_on = _is_overloaded if overloaded else _inputs_differ
    while True:
        _offload_covered(exchange)
        newly_covered = False
        while not newly_covered:
            if exchange.is_balanced(Metric.OUTPUT) or not goes_on(exchange):
                return
            card = _closest_uncovered(exchange, overloaded)
            if card is None:
                return
            newly_covered = exchange.take(card)


def _closest(exchange: Exchange, filters: Iterable[Filter], metric: Metric, enough: Enough) -> ReportCard | None:
    """The card that brings the difference closest to zero, if any makes it smaller."""
    cards = (exchange.card(filter, metric, enough) for filter in filters)
    better = [card for card in cards if card and _closer(exchange, card, metric)]
    return min(better, key=lambda card: abs(card.difference), default=None)


def _closer(exchange: Exchange, card: ReportCard, metric: Metric) -> bool:
    return abs(card.difference) < abs(exchange.difference(metric))


def _relieves(tuning: Tuning) -> Enough:
    def enough(own: BrokerLoad, other: BrokerLoad) -> bool:  # noqa: ARG001
        ratios = own.ratios
        return not tuning.exceeds_lower({resource: ratios[resource] for resource in _RELIEVED})

    return enough


def _offload_covered(exchange: Exchange) -> None:
    """Phase I: types I, II and III in turn, and of each what has most traffic first."""
    filters = dict.fromkeys(sorted(exchange.covered, key=exchange.bandwidth, reverse=True))
    while not exchange.is_balanced(Metric.OUTPUT):
        card = _next_covered(exchange, filters)
        if card is None:
            return
        exchange.take(card)
        del filters[card.filter]


def _next_covered(exchange: Exchange, filters: dict[Filter, None]) -> ReportCard | None:
    """What comes next in phase I. What would enlarge a difference also enlarges any smaller one, and is left out."""
    type_two: ReportCard | None = None
    without: list[Filter] = []
    for filter in list(filters):
        if not exchange.reducible(filter):
            without.append(filter)
        elif card := _acceptable(exchange, filter, filters):
            if card.reduced:
                return card
            type_two = type_two or card
    if type_two:
        return type_two
    cards = (_acceptable(exchange, filter, filters) for filter in without)
    return next((card for card in cards if card), None)


def _acceptable(exchange: Exchange, filter: Filter, filters: dict[Filter, None]) -> ReportCard | None:
    card = exchange.card(filter, Metric.OUTPUT, exchange.balances(Metric.OUTPUT))
    if card and _closer(exchange, card, Metric.OUTPUT):
        return card
    del filters[filter]
    return None


def _closest_uncovered(exchange: Exchange, overloaded: bool) -> ReportCard | None:
    """What comes next in phase II: as in the input algorithm, and without a larger difference of input ratios."""
    balances = exchange.balances(Metric.OUTPUT)
    enough = _either(balances, _relieves_output(exchange.tuning)) if overloaded else balances
    cards = (exchange.card(filter, Metric.OUTPUT, enough) for filter in exchange.uncovered)
    better = [card for card in cards if card and _closer(exchange, card, Metric.OUTPUT)]
    if not overloaded:
        better = [card for card in better if _inputs_closer(exchange, card)]
    return min(better, key=lambda card: abs(card.difference), default=None)


def _inputs_closer(exchange: Exchange, card: ReportCard) -> bool:
    after = card.own.metrics.difference(Metric.INPUT, card.other.metrics, exchange.tuning.normal_delay)
    return abs(after) <= abs(exchange.difference(Metric.INPUT))


def _inputs_differ(exchange: Exchange) -> bool:
    return not exchange.is_balanced(Metric.INPUT)


def _is_overloaded(exchange: Exchange) -> bool:
    return not _relieves_output(exchange.tuning)(exchange.own, exchange.other)


def _relieves_output(tuning: Tuning) -> Enough:
    return lambda own, other: own.output_ratio <= tuning.output.lower  # noqa: ARG005


def _either(first: Enough, second: Enough) -> Callable[[BrokerLoad, BrokerLoad], bool]:
    return lambda own, other: first(own, other) or second(own, other)
