"""Who does without which records of a dataset that is read as a whole."""

from __future__ import annotations

import numpy as np

from tocsin.data.channels.stains import Stain, Stains, concerns_all, rest

BOB, CID = ("People", "b0b"), ("People", "c1d")


def test_what_fails_for_very_many_concerns_all_who_were_there_and_nobody_who_came_later() -> None:
    stain = Stain(frozenset({BOB}), last=7)
    assert concerns_all([stain], np.array([3, 7]))
    assert not concerns_all([stain], np.array([3, 8]))
    assert (stain.condition, rest([stain])) == ("__be <= 7", "NOT (__be <= 7)")


def test_what_fails_for_some_concerns_these_alone() -> None:
    stains = [Stain(frozenset({BOB}), (3, 5)), Stain(frozenset({CID, ("Cities", "x")}), (7,))]
    assert concerns_all(stains, np.array([3, 5, 7]))
    assert not concerns_all(stains, np.array([3, 4, 5, 7]))
    assert rest(stains) == "NOT (__be IN (3, 5)) AND NOT (__be IN (7))"
    assert (stains[1].of("People"), stains[1].of("Reports")) == ({"c1d"}, set())


def test_what_was_judged_last_counts() -> None:
    stains = Stains()
    stains.put("c", [Stain(frozenset({BOB}), (3,)), Stain(frozenset(), (5,))])
    assert [stain.bes for stain in stains.of("c")] == [(3,)]
    stains.put("c", [])
    assert list(stains.of("c")) == []
    stains.put("c", [Stain(frozenset({BOB}), (3,))])
    stains.forget("c")
    assert list(stains.of("c")) == []
