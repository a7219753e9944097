from __future__ import annotations

import pytest

from tocsin.demo.telling import Figures
from tocsin.demo.verdict import Missed, Verdict, WrongError, insist, verdict


def test_everybody_is_to_get_what_was_found_for_their_subscriptions() -> None:
    received = {"p1": {7: [3, 5]}, "p2": {7: [3, 5], 8: []}}
    found = {7: frozenset({3, 5}), 9: frozenset({1})}
    assert verdict(received, found).lost == 0
    assert verdict(received, found).delivered == 4


def test_what_one_of_them_did_not_get_is_lost() -> None:
    received = {"p1": {7: [3, 5]}, "p2": {7: [5], 8: []}}
    found = {7: frozenset({3, 5}), 8: frozenset({1, 2})}
    told = verdict(received, found)
    assert (told.expected, told.lost, told.delivered) == (6, 3, 3)
    assert told.missed == [Missed("p2", 7, [3]), Missed("p2", 8, [1, 2])]


def test_what_came_besides_is_not_asked_for() -> None:
    assert verdict({"p1": {7: [1, 2, 3]}}, {7: frozenset({3})}).delivered == 1


@pytest.mark.parametrize(
    ("verdict", "figures"),
    [
        (Verdict(9, [Missed("p1", 7, [3])]), Figures()),
        (Verdict(9, []), Figures(duplicates=1)),
        (Verdict(9, []), Figures(disordered=1)),
    ],
    ids=["lost", "twice", "out of order"],
)
def test_a_demo_in_which_something_went_wrong_does_not_end_well(verdict: Verdict, figures: Figures) -> None:
    with pytest.raises(WrongError, match="not everybody got what was for them"):
        insist(verdict, figures)


def test_a_demo_in_which_nothing_went_wrong_ends_well() -> None:
    insist(Verdict(9, []), Figures(moved=300))
