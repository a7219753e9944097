"""The tests of who goes are checked: small faults in PRESS, the offload algorithms and the states must fail them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
from hypothesis import Phase, settings

from tests.overlay import test_detection, test_load, test_offload
from tocsin.overlay import detection, offload
from tocsin.overlay.detection import Availability, Neighbour, OffloadAction
from tocsin.overlay.exchange import Exchange, ReportCard
from tocsin.overlay.load import BrokerLoad, Metrics, Resource
from tocsin.overlay.profile import Profile
from tocsin.overlay.tuning import Trigger, Tuning


def forgets_what_was_chosen(self: Exchange, card: ReportCard) -> bool:
    received = self._received
    newly = _take(self, card)
    self._received = received
    return newly


def sorts_the_other_way(items: Iterable[Any], key: Callable[[Any], Any], reverse: bool = False) -> list[Any]:
    return sorted(items, key=key, reverse=not reverse)


def has_the_same_delay_with_more(self: BrokerLoad, incoming: float, outgoing: float, subscriptions: int) -> BrokerLoad:
    return _change(self, incoming, outgoing, 0)


def takes_all_for_available(
    metrics: Metrics,
    ratios: dict[Resource, float],
    state: Availability,
    neighbours: Iterable[Neighbour],
    tuning: Tuning,
    trigger: Trigger,
) -> list[OffloadAction]:
    available = [each._replace(availability=Availability.OK) for each in neighbours]
    return detection.detect(metrics, ratios, state, available, tuning, trigger)


def is_never_overloaded(overloaded: bool, busy: bool, stabilising: bool) -> Availability:
    return detection.availability(False, busy, stabilising)


def forgets_who_stays(self: Exchange, *arguments: Any) -> None:
    _init(self, *arguments[:7])


_SETTINGS = "_hypothesis_internal_use_settings"
_take, _init, _change = Exchange.take, Exchange.__init__, BrokerLoad.change

MUTANTS: dict[str, tuple[Any, str, Any, Callable[[], None]]] = {
    "what the acceptor receives already counts as more": (
        Profile,
        "received",
        0,
        test_offload.test_what_the_acceptor_receives_already_is_no_more_to_it,
    ),
    "what was chosen before counts as more again": (
        Exchange,
        "take",
        forgets_what_was_chosen,
        test_offload.test_what_comes_for_several_comes_to_the_acceptor_once_and_goes_with_the_last,
    ),
    "what others match, too, counts as less": (
        Exchange,
        "reducible",
        lambda self, filter: self._profile.rate(self._profile.vector(filter)),
        test_offload.test_what_comes_for_several_comes_to_the_acceptor_once_and_goes_with_the_last,
    ),
    "samples count alike, whatever their size": (
        Profile,
        "_matched_bytes",
        lambda self, vector: 100 * vector.bit_count(),
        test_offload.test_what_a_subscription_sends_is_the_sizes_of_what_it_matches,
    ),
    "the matching delay does not grow": (
        BrokerLoad,
        "change",
        has_the_same_delay_with_more,
        test_load.test_the_delay_grows_with_the_subscriptions,
    ),
    "an acceptor is given too much": (
        Exchange,
        "_is_too_much",
        lambda self, metric, own, other: False,
        test_offload.test_nobody_goes_twice_and_the_acceptor_is_never_overloaded,
    ),
    "who makes a difference larger goes": (
        offload,
        "_closer",
        lambda exchange, card, metric: True,
        test_offload.test_nobody_goes_whose_going_would_make_the_difference_larger,
    ),
    "who has most traffic goes first": (
        offload,
        "sorted",
        sorts_the_other_way,
        test_offload.test_the_least_traffic_goes_first_where_delays_are_made_even,
    ),
    "an overload is relieved as far as a difference is": (
        offload,
        "_relieves",
        lambda tuning: lambda own, other: own.input_ratio <= other.input_ratio,
        test_offload.test_an_overload_is_relieved_as_far_as_the_lower_threshold,
    ),
    "phase II makes inputs uneven": (
        offload,
        "_inputs_closer",
        lambda exchange, card: True,
        test_offload.test_phase_two_sends_nobody_who_would_turn_the_input_ratios_round,
    ),
    "who stays is reckoned to be gone": (
        Exchange,
        "__init__",
        forgets_who_stays,
        test_offload.test_what_those_want_who_stay_comes_as_before,
    ),
    "who is N/A is asked": (
        test_detection,
        "detect",
        takes_all_for_available,
        partial(test_detection.test_who_is_not_available_is_not_asked, Availability.OVERLOADED),
    ),
    "who has too much is not N/A": (
        test_detection,
        "availability",
        is_never_overloaded,
        test_detection.test_the_state_is_that_of_the_diagram,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_test_catches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, mutant, test = MUTANTS[name]
    if used := getattr(test, _SETTINGS, None):
        # Many are tried, of which the first that fails will do, and need not be made a small one.
        many = settings(used, phases=[Phase.generate], report_multiple_bugs=False, max_examples=500)
        monkeypatch.setattr(test, _SETTINGS, many)
    monkeypatch.setattr(owner, attribute, mutant, raising=False)
    with pytest.raises(AssertionError):
        test()
