from __future__ import annotations

from tocsin.demo.verdict import verdict


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


def test_what_came_besides_is_not_asked_for() -> None:
    assert verdict({"p1": {7: [1, 2, 3]}}, {7: frozenset({3})}).delivered == 1
