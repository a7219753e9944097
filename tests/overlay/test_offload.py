"""The offload algorithms: against plain ones, by what they promise, and by example."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.overlay.loads import LOADS, Case, cases, ordered
from tests.overlay.naive import Naive, naive_input
from tocsin.content.filter import Filter
from tocsin.content.language import parse
from tocsin.content.poset import Poset
from tocsin.content.values import Publication
from tocsin.overlay import offload
from tocsin.overlay.detection import Algorithm
from tocsin.overlay.exchange import Exchange, ReportCard
from tocsin.overlay.load import BrokerLoad, Metric
from tocsin.overlay.profile import Profile
from tocsin.overlay.tuning import Trigger, Tuning

SOME = settings(max_examples=examples(60), deadline=None)
METRICS = {Algorithm.INPUT: Metric.INPUT, Algorithm.MATCH: Metric.DELAY, Algorithm.OUTPUT: Metric.OUTPUT}
ALGORITHMS = st.sampled_from(Algorithm)


class Watched(Exchange):
    """Notes every choice with what was before it."""

    def begin(self) -> list[tuple[BrokerLoad, BrokerLoad, ReportCard]]:
        self.taken: list[tuple[BrokerLoad, BrokerLoad, ReportCard]] = []
        return self.taken

    def take(self, card: ReportCard) -> bool:
        self.taken.append((self.own, self.other, card))
        return super().take(card)


def watched(case: Case) -> Watched:
    exchange = Watched(case.held, case.order, case.profile, case.own, case.other, case.tuning)
    exchange.begin()
    return exchange


def gone(exchange: Exchange) -> dict[Filter, int]:
    return {filter: len(subscribers) for filter, subscribers in exchange.chosen}


@SOME
@given(cases())
def test_the_input_algorithm_chooses_as_the_plain_one_does(case: Case) -> None:
    exchange, naive = case.exchange, naive_input(case)
    offload.offload_input(exchange)
    # Of two choices that are equally good either may be taken: what counts is how far they lead.
    assert abs(exchange.difference(Metric.INPUT)) == pytest.approx(abs(naive.difference(Metric.INPUT)), abs=1e-6)


@SOME
@given(cases(), ALGORITHMS)
def test_with_a_bound_the_acceptor_gets_nothing_that_it_would_have_to_send_back(
    case: Case, algorithm: Algorithm
) -> None:
    bound = Trigger(0.05, 0.02)
    exchange = Exchange(case.held, case.order, case.profile, case.own, case.other, case.tuning, bound)
    before = {metric: exchange.difference(metric) for metric in Metric}
    offload.offload(algorithm, exchange, overloaded=False)
    levelled = METRICS[algorithm]
    gained = abs(before[levelled]) - abs(exchange.difference(levelled))
    for metric in set(Metric) - {levelled}:
        turned = -exchange.difference(metric)
        grown = turned - max(0.0, -before[metric])
        assert not exchange.chosen or turned <= bound.of(metric) + 1e-9 or grown <= 0.5 * gained + 1e-9


@SOME
@given(cases())
def test_filters_of_which_nobody_may_be_chosen_are_left_alone(case: Case) -> None:
    """Those whose subscribers are all about to leave: what they cover is considered as if they were gone."""
    held = dict(list(case.held.items())[::2])
    exchange = Exchange(held, case.order, case.profile, case.own, case.other, case.tuning)
    assert set(exchange.left) == set(held)
    assert set(exchange.top) == {one for one in held if not any(other != one and other.covers(one) for other in held)}
    offload.offload_input(exchange)
    assert set(gone(exchange)) <= set(held)


@SOME
@given(cases(), ALGORITHMS, st.booleans())
def test_the_estimates_are_those_from_scratch(case: Case, algorithm: Algorithm, overloaded: bool) -> None:
    exchange = case.exchange
    offload.offload(algorithm, exchange, overloaded)
    own, other = Naive(case).loads(gone(exchange))
    assert exchange.own.metrics == pytest.approx(own.metrics, rel=1e-6, abs=1e-6)
    assert exchange.other.metrics == pytest.approx(other.metrics, rel=1e-6, abs=1e-6)


@SOME
@given(cases(), ALGORITHMS, st.booleans(), st.lists(st.integers(0, 4), min_size=7, max_size=7))
def test_what_those_want_who_stay_comes_as_before(
    case: Case, algorithm: Algorithm, overloaded: bool, staying: list[int]
) -> None:
    stay = {filter: names[:count] for (filter, names), count in zip(case.held.items(), staying, strict=False)}
    go = {filter: names[len(stay[filter]) :] for filter, names in case.held.items()}
    exchange = Exchange(
        {filter: names for filter, names in go.items() if names},
        case.order,
        case.profile,
        case.own,
        case.other,
        case.tuning,
        None,
        [filter for filter, names in stay.items() if names],
    )
    offload.offload(algorithm, exchange, overloaded)
    assert all(set(names) <= set(go[filter]) for filter, names in exchange.chosen)
    own, other = Naive(case).loads(gone(exchange))
    assert exchange.own.metrics == pytest.approx(own.metrics, rel=1e-6, abs=1e-6)
    assert exchange.other.metrics == pytest.approx(other.metrics, rel=1e-6, abs=1e-6)


@SOME
@given(cases(), ALGORITHMS, st.booleans())
def test_nobody_goes_twice_and_the_acceptor_is_never_overloaded(
    case: Case, algorithm: Algorithm, overloaded: bool
) -> None:
    exchange = watched(case)
    offload.offload(algorithm, exchange, overloaded)
    names = [name for _, subscribers in exchange.chosen for name in subscribers]
    assert len(names) == len(set(names)) == sum(card.subscribers for _, _, card in exchange.taken)
    assert all(not case.tuning.exceeds_lower(card.other.ratios) for _, _, card in exchange.taken)


@SOME
@given(cases(), ALGORITHMS)
def test_every_choice_makes_the_difference_smaller(case: Case, algorithm: Algorithm) -> None:
    exchange, metric = watched(case), METRICS[algorithm]
    offload.offload(algorithm, exchange, overloaded=False)
    for own, other, card in exchange.taken:
        before = own.metrics.difference(metric, other.metrics, case.tuning.normal_delay)
        assert abs(card.difference) < abs(before)
        assert before > case.tuning.balanced


@SOME
@given(cases())
def test_the_least_traffic_goes_first_where_delays_are_made_even(case: Case) -> None:
    exchange = watched(case)
    offload.offload_match(exchange)
    bandwidths = [card.bandwidth for _, _, card in exchange.taken]
    assert bandwidths == sorted(bandwidths)
    if exchange.difference(Metric.DELAY) > case.tuning.balanced:
        # One more subscriber of anything, if it were not worse, would be too much for the acceptor.
        for filter in exchange.left:
            card = exchange.card(filter, Metric.DELAY, lambda own, other: True)
            assert card is None or abs(card.difference) >= abs(exchange.difference(Metric.DELAY))


@SOME
@given(cases())
def test_an_overloaded_broker_goes_on_until_it_is_relieved_or_nobody_takes_more(case: Case) -> None:
    exchange = case.exchange
    offload.offload_match(exchange, overloaded=True)
    ratios = exchange.own.ratios
    relieved = all(ratio <= 0.9 for resource, ratio in ratios.items() if resource.value != "output")
    bearable = [exchange.card(each, Metric.DELAY, lambda own, other: True) for each in exchange.left]
    assert relieved or not any(bearable)


@SOME
@given(cases())
def test_phase_two_leaves_input_ratios_no_further_apart(case: Case) -> None:
    exchange = watched(case)
    offload.offload_output(exchange)
    for own, other, card in exchange.taken:
        if not card.covered:
            before = own.input_ratio - other.input_ratio
            assert before > case.tuning.balanced
            assert abs(card.own.input_ratio - card.other.input_ratio) <= before


@SOME
@given(cases(), LOADS)
def test_report_cards_say_what_covers_and_what_is_reduced(case: Case, load: BrokerLoad) -> None:
    exchange, naive = case.exchange, Naive(case)
    for filter in case.held:
        card = exchange.card(filter, Metric.OUTPUT, exchange.balances(Metric.OUTPUT))
        assert (card.subscribers if card else 0) == naive.count(filter, exchange.balances(Metric.OUTPUT))
        if card:
            assert card.covered == any(other.covers(filter) for other in case.covering)
            others = naive.matched(other for other in case.held if other != filter)
            left = len(naive.matched(case.held) - others) if card.subscribers == len(case.held[filter]) else 0
            assert card.reduced == pytest.approx(left * naive.unit)


STOCKS: list[Publication] = [{"class": "STOCK", "volume": float(number)} for number in range(10)]


def stock_case(held: dict[str, int], covering: list[str], own: BrokerLoad, other: BrokerLoad) -> Case:
    """Ten publications in a second, with volumes from 0 to 9."""
    filters = {parse(text): [f"{text} {number}" for number in range(count)] for text, count in held.items()}
    css = list(ordered([parse(text) for text in covering]).covering_set())
    return Case(filters, css, STOCKS, 1.0, own, other, Tuning())


def texts(exchange: Exchange) -> list[tuple[str, int]]:
    return [(str(filter), len(subscribers)) for filter, subscribers in exchange.chosen]


def test_phase_one_takes_what_reduces_the_input_first_and_then_what_has_most_traffic() -> None:
    held = {"volume >= 2": 1, "volume < 2": 1, "volume >= 5": 1, "volume >= 3": 1}
    own = BrokerLoad(10.0, 0.001, 2300.0, 10_000.0, 4)
    case = stock_case(held, ["volume exists"], own, BrokerLoad(10.0, 0.001, 0.0, 10_000.0, 4))
    exchange = case.exchange
    offload.offload_output(exchange)
    # Without 'volume >= 2' one publication, of volume 2, comes no more: type I, as is 'volume < 2', with less traffic.
    assert texts(exchange) == [("volume >= 2", 1), ("volume < 2", 1)]


def test_of_what_cannot_go_as_a_whole_some_go_after_all_that_can() -> None:
    held = {"volume >= 2": 4, "volume < 2": 1}
    own = BrokerLoad(10.0, 0.001, 3400.0, 10_000.0, 5)
    case = stock_case(held, ["volume exists"], own, BrokerLoad(10.0, 0.001, 0.0, 10_000.0, 4))
    exchange = case.exchange
    offload.offload_output(exchange)
    assert texts(exchange) == [("volume < 2", 1), ("volume >= 2", 2)]


def test_what_comes_for_several_comes_to_the_acceptor_once_and_goes_with_the_last() -> None:
    own, other = BrokerLoad(10.0, 0.05, 0.0, 10_000.0, 2), BrokerLoad(0.0, 0.001, 0.0, 10_000.0, 0)
    exchange = stock_case({"volume >= 2": 1, "volume <= 5": 1}, [], own, other).exchange
    incoming: list[float] = []
    for filter in exchange.left:
        card = exchange.card(filter, Metric.DELAY, lambda own, other: True)
        assert card
        exchange.take(card)
        incoming += [exchange.own.incoming, exchange.other.incoming]
    assert incoming == pytest.approx([6.0, 8.0, 0.0, 10.0])


def test_what_the_acceptor_receives_already_is_no_more_to_it() -> None:
    own, other = BrokerLoad(8.0, 0.05, 0.0, 10_000.0, 1), BrokerLoad(5.0, 0.001, 0.0, 10_000.0, 1)
    exchange = stock_case({"volume >= 2": 1}, ["volume >= 5"], own, other).exchange
    (filter,) = exchange.left
    card = exchange.card(filter, Metric.DELAY, lambda own, other: True)
    assert card
    assert (card.own.incoming, card.other.incoming) == pytest.approx((0.0, 8.0))


def test_nobody_goes_whose_going_would_make_the_difference_larger() -> None:
    own, slower = BrokerLoad(10.0, 0.01, 0.0, 10_000.0, 1), BrokerLoad(0.0, 0.03, 0.0, 10_000.0, 1)
    exchange = stock_case({"volume >= 0": 1}, [], own, slower).exchange
    offload.offload_input(exchange)
    assert exchange.chosen == []


def test_an_overload_is_relieved_as_far_as_the_lower_threshold() -> None:
    own = BrokerLoad(10.0, 0.096, 0.0, 10_000.0, 12, cpu=0.96)
    exchange = stock_case({"volume >= 0": 12}, [], own, BrokerLoad(0.0, 0.001, 0.0, 10_000.0, 1)).exchange
    offload.offload_match(exchange, overloaded=True)
    assert texts(exchange) == [("volume >= 0", 1)]
    assert exchange.own.input_ratio == pytest.approx(0.88)


def test_phase_two_sends_nobody_who_would_turn_the_input_ratios_round() -> None:
    own, other = BrokerLoad(10.0, 0.05, 5000.0, 10_000.0, 2), BrokerLoad(45.0, 0.01, 0.0, 10_000.0, 100)
    exchange = stock_case({"volume >= 0": 2}, [], own, other).exchange
    offload.offload_output(exchange)
    assert exchange.chosen == []


def test_phase_two_ends_when_input_ratios_are_even() -> None:
    own = BrokerLoad(10.0, 0.01, 5000.0, 10_000.0, 2)
    even = BrokerLoad(10.0, 0.01, 0.0, 10_000.0, 2)
    exchange = stock_case({"volume >= 2": 2}, [], own, even).exchange
    offload.offload_output(exchange)
    assert exchange.chosen == []
    overloaded = stock_case({"volume >= 2": 2}, [], own.change(0.0, 4600.0, 0), even).exchange
    offload.offload_output(overloaded, overloaded=True)
    assert texts(overloaded) == [("volume >= 2", 1)]
    assert overloaded.own.output_ratio <= 0.9


def test_what_phase_two_covers_anew_goes_in_phase_one() -> None:
    held = {"volume >= 2": 1, "volume >= 5": 1, "volume < 1": 1}
    own = BrokerLoad(10.0, 0.02, 5000.0, 10_000.0, 3)
    case = stock_case(held, [], own, BrokerLoad(0.0, 0.001, 0.0, 10_000.0, 30))
    exchange = watched(case)
    offload.offload_output(exchange)
    assert [(str(card.filter), card.covered) for _, _, card in exchange.taken][:2] == [
        ("volume >= 2", False),
        ("volume >= 5", True),
    ]


def test_without_samples_nothing_but_delays_can_be_made_even() -> None:
    own, other = BrokerLoad(10.0, 0.02, 5000.0, 10_000.0, 20), BrokerLoad(0.0, 0.001, 0.0, 10_000.0, 1)
    case = stock_case({"volume >= 2": 20}, [], own, other)
    case.publications = []
    outcomes = {}
    for algorithm in Algorithm:
        exchange = case.exchange
        offload.offload(algorithm, exchange, overloaded=False)
        outcomes[algorithm] = sum(len(subscribers) for _, subscribers in exchange.chosen)
    assert outcomes[Algorithm.OUTPUT] == 0
    assert outcomes[Algorithm.MATCH] == 10


def test_where_as_many_as_would_be_enough_are_too_many_one_fewer_go() -> None:
    own, other = BrokerLoad(10.0, 0.03, 0.0, 10_000.0, 3), BrokerLoad(10.0, 0.015, 0.0, 10_000.0, 0)
    exchange = stock_case({"volume >= 2": 2}, [], own, other).exchange
    offload.offload_match(exchange)
    # With both the acceptor would have 20 ms more than the offloader, which has 15 ms more now; with one it has 5 ms.
    assert texts(exchange) == [("volume >= 2", 1)]
    assert exchange.difference(Metric.DELAY) == pytest.approx(0.05)


class Counted(Poset):
    """Counts how often it is asked what lies above and below."""

    asked = 0

    def parents(self, filter: Filter) -> list[Filter]:
        self.asked += 1
        return super().parents(filter)

    def children(self, filter: Filter) -> list[Filter]:
        self.asked += 1
        return super().children(filter)


def grid(size: int) -> tuple[dict[Filter, list[str]], Counted]:
    """Filters with as many ways up as there are ways through a grid."""
    filters = [parse(f"high > {row} and volume > {column}") for row in range(size) for column in range(size)]
    order = Counted()
    for filter in filters:
        order.insert(filter)
    return {filter: [f"s{number}"] for number, filter in enumerate(filters)}, order


def test_each_filter_is_looked_at_a_few_times_however_many_ways_lead_to_it() -> None:
    held, order = grid(12)
    tuning = Tuning()
    own = BrokerLoad(100, 0.0005, 1e3, 1e6, len(held), 1.0, 0, 1e9, 0)
    other = BrokerLoad(0, 0.000001, 0, 1e6, 1)
    exchange = Exchange(held, order, Profile(0.0, [], tuning), own, other, tuning)
    offload.offload_match(exchange, overloaded=True)
    assert len(exchange.chosen) == len(held)
    assert order.asked < 5 * len(held)


@pytest.mark.parametrize("inserted", ["BAC", "ABC", "BCA", "CBA"])
def test_what_only_filters_without_subscribers_cover_is_at_the_top(inserted: str) -> None:
    filters = {"A": parse("x > 1"), "B": parse("x > 2"), "C": parse("x > 3")}
    order, load = ordered(filters[name] for name in inserted), BrokerLoad(10, 0.01, 1, 1, 3)
    exchange = Exchange({filters["C"]: ["s"]}, order, Profile(0.0, [], Tuning()), load, load, Tuning())
    assert exchange.top == exchange.left == [filters["C"]]


@SOME
@given(cases(), ALGORITHMS, st.integers(0, 6))
def test_what_an_offloader_looks_at_is_bounded_and_what_was_chosen_by_then_goes(
    case: Case, algorithm: Algorithm, cards: int
) -> None:
    case.tuning = msgspec.structs.replace(case.tuning, report_cards=cards)
    exchange = watched(case)
    offload.offload(algorithm, exchange, overloaded=False)
    assert len(exchange.chosen) <= cards
    for own, other, card in exchange.taken:
        before = own.metrics.difference(METRICS[algorithm], other.metrics, case.tuning.normal_delay)
        assert abs(card.difference) < abs(before)


@SOME
@given(cases(), st.randoms(use_true_random=False))
def test_the_top_and_what_is_covered_are_those_of_the_definitions(case: Case, random: Random) -> None:
    exchange = case.exchange
    covering = list(case.covering)
    while exchange.left:
        left = exchange.left
        tops = {one for one in left if not any(other != one and other.covers(one) for other in left)}
        covered = {one for one in left if any(other.covers(one) for other in covering)}
        assert (set(exchange.top), set(exchange.covered)) == (tops, covered)
        assert set(exchange.uncovered) == set(left) - covered
        filter = random.choice(left)
        newly = exchange.take(ReportCard(filter, 1, 0.0, False, 0.0, 0.0, exchange.own, exchange.other))
        covering.append(filter)
        assert newly == any(filter.covers(each) for each in exchange.left if each not in covered)


def test_what_a_subscription_sends_is_the_sizes_of_what_it_matches() -> None:
    large, small, tuning = parse("n > 5"), parse("n < 5"), Tuning()
    profile = Profile(0.0, [], tuning)
    for second, (value, size) in enumerate([(9, 1000), (1, 10), (9, 1000), (1, 30)], 1):
        profile.record(float(second), {"n": value}, [large if value > 5 else small], size)
    assert profile.incoming == 1.0
    assert (profile.bandwidth(large), profile.bandwidth(small)) == (500.0, 10.0)
    assert profile.bandwidth(parse("n = 3")) == 0.0


def test_an_acceptors_covering_set_is_not_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """For many filters that do not cover each other that takes as long as comparing each with all others."""
    monkeypatch.setattr(Poset, "insert", None)
    covering = [parse(f"high > {number} and volume > {9 - number}") for number in range(10)]
    profile = Profile(0.0, covering, Tuning())
    profile.record(1.0, {"high": 3, "volume": 9}, [], 10)
    assert profile.received == 1
    assert [profile.covers(parse(f"high > {number} and volume > 4")) for number in (4, 5)] == [False, True]
