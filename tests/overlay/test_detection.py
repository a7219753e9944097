"""When balancing is invoked, with whom, and for what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.overlay.loads import LOADS
from tocsin.overlay.detection import (
    Algorithm,
    Attempts,
    Availability,
    Neighbour,
    OffloadAction,
    Stabilisation,
    availability,
    balanced_with,
    detect,
)
from tocsin.overlay.load import BrokerLoad, Metrics, Resource
from tocsin.overlay.tuning import Band, Tuning

TUNING = Tuning()
OK, BUSY, OVERLOADED, STABILIZING = (
    Availability.OK,
    Availability.BUSY,
    Availability.OVERLOADED,
    Availability.STABILIZING,
)
IDLE = Metrics(0.1, 0.1, 0.001)


def found(
    metrics: Metrics, *neighbours: Neighbour, state: Availability = OK, tuning: Tuning = TUNING
) -> list[OffloadAction]:
    """What the local detection finds."""
    ratios = {Resource.INPUT: metrics.input, Resource.OUTPUT: metrics.output}
    return detect(metrics, ratios, state, neighbours, tuning, tuning.local)


def pairs(actions: list[OffloadAction]) -> list[tuple[str, Algorithm]]:
    return [(action.acceptor, action.algorithm) for action in actions]


def test_what_differs_by_more_than_the_trigger_is_listed_with_the_largest_difference_first() -> None:
    mine = Metrics(0.5, 0.45, 0.031)
    actions = found(mine, Neighbour("near", OK, Metrics(0.41, 0.2, 0.03)), Neighbour("far", OK, Metrics(0.1, 0.44, 0)))
    assert pairs(actions) == [("far", Algorithm.INPUT), ("far", Algorithm.MATCH), ("near", Algorithm.OUTPUT)]
    assert [action.difference for action in actions] == pytest.approx([0.4, 0.31, 0.25])
    assert not any(action.overloaded for action in actions)


def test_only_the_one_with_more_invokes_balancing() -> None:
    assert found(IDLE, Neighbour("loaded", OK, Metrics(0.8, 0.8, 0.05))) == []


@pytest.mark.parametrize("state", [BUSY, OVERLOADED, STABILIZING])
def test_who_is_not_available_is_not_asked(state: Availability) -> None:
    assert found(Metrics(0.99, 0.5, 0.01), Neighbour("other", state, IDLE)) == []


def test_in_the_inert_band_nothing_is_invoked() -> None:
    metrics = Metrics(0.93, 0.5, 0.01)
    assert found(metrics, Neighbour("other", OK, IDLE), state=OVERLOADED) == []


def test_an_overload_comes_before_differences() -> None:
    actions = found(Metrics(0.96, 0.5, 0.05), Neighbour("other", OK, IDLE), state=OVERLOADED)
    assert pairs(actions) == [("other", Algorithm.MATCH)]
    assert actions[0].difference == pytest.approx(0.86)
    assert actions[0].overloaded


@pytest.mark.parametrize("resource", [Resource.CPU, Resource.MEMORY])
def test_cpu_and_memory_are_relieved_by_the_match_algorithm(resource: Resource) -> None:
    actions = detect(IDLE, {resource: 0.96}, OVERLOADED, [Neighbour("other", OK, IDLE)], TUNING, TUNING.local)
    assert pairs(actions) == [("other", Algorithm.MATCH)]


def test_each_resource_has_thresholds_of_its_own() -> None:
    tuning = Tuning(output=Band(0.3, 0.4))
    actions = found(Metrics(0.1, 0.45, 0.001), Neighbour("other", OK, IDLE), tuning=tuning)
    assert pairs(actions) == [("other", Algorithm.OUTPUT)]
    assert actions[0].overloaded


def test_while_stabilizing_only_an_overload_invokes_balancing() -> None:
    other = Neighbour("other", OK, IDLE)
    assert found(Metrics(0.8, 0.8, 0.05), other, state=STABILIZING) == []
    assert pairs(found(Metrics(0.8, 0.96, 0.05), other, state=STABILIZING)) == [("other", Algorithm.OUTPUT)]


def test_who_is_busy_invokes_nothing() -> None:
    assert found(Metrics(0.99, 0.99, 0.05), Neighbour("other", OK, IDLE), state=BUSY) == []


@given(LOADS, st.booleans(), st.booleans())
def test_the_state_is_that_of_the_diagram(load: BrokerLoad, busy: bool, stabilising: bool) -> None:
    state = availability(TUNING.exceeds_lower(load.ratios), busy, stabilising)
    if busy:
        assert state is BUSY
    elif max(load.ratios.values()) > 0.9:
        assert state is OVERLOADED
    else:
        assert state is (STABILIZING if stabilising else OK)


def test_the_balanced_set_is_symmetric() -> None:
    mine, theirs = Metrics(0.5, 0.5, 0.01), Metrics(0.59, 0.41, 0.019)
    none = Attempts(TUNING)
    assert balanced_with(mine, [Neighbour("b", BUSY, theirs)], TUNING, TUNING.local, none) == ["b"]
    assert balanced_with(theirs, [Neighbour("a", OK, mine)], TUNING, TUNING.local, none) == ["a"]
    assert balanced_with(mine, [Neighbour("b", OK, Metrics(0.61, 0.5, 0.01))], TUNING, TUNING.local, none) == []


def test_a_difference_of_which_nothing_can_be_done_counts_as_balanced_until_one_of_the_two_changes() -> None:
    mine, other = Metrics(0.3, 0.5, 0.01), Neighbour("b", OK, Metrics(0.3, 0.3, 0.01))
    sender, getter = Attempts(TUNING), Attempts(TUNING)
    me = Neighbour("a", OK, mine)
    assert balanced_with(mine, [other], TUNING, TUNING.local, sender) == []
    sender.send_nobody(mine, other)
    getter.get_nobody(other.metrics, me)
    assert balanced_with(mine, [other], TUNING, TUNING.local, sender) == ["b"]
    assert balanced_with(other.metrics, [me], TUNING, TUNING.local, getter) == ["a"]
    # The one that has less may still have more of something else, which it has not tried.
    busier = Metrics(0.3, 0.3, 0.015)
    assert balanced_with(busier, [me._replace(metrics=Metrics(0.19, 0.5, 0.01))], TUNING, TUNING.local, getter) == []
    assert balanced_with(mine, [other._replace(metrics=Metrics(0.3, 0.24, 0.01))], TUNING, TUNING.local, sender) == []
    assert balanced_with(mine, [other], TUNING, TUNING.local, sender) == []


def test_a_broker_stabilises_for_a_while_and_until_its_metrics_rest() -> None:
    stabilisation = Stabilisation(TUNING)
    stabilisation.observe(0.0, IDLE)
    assert not stabilisation.active
    stabilisation.begin(10.0)
    for now, metrics in ((20.0, IDLE), (35.0, IDLE), (40.0, Metrics(0.16, 0.1, 0.001))):
        stabilisation.observe(now, metrics)
        assert stabilisation.active
    stabilisation.observe(45.0, Metrics(0.18, 0.1, 0.005))
    assert not stabilisation.active


def test_a_delay_that_changes_keeps_a_broker_stabilising() -> None:
    stabilisation = Stabilisation(TUNING)
    stabilisation.begin(0.0)
    stabilisation.observe(30.0, IDLE)
    stabilisation.observe(35.0, IDLE._replace(delay=0.0061))
    assert stabilisation.active
    stabilisation.observe(40.0, IDLE._replace(delay=0.0061))
    assert not stabilisation.active
