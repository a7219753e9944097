from __future__ import annotations

import numpy as np

from tocsin.balance.control.controller import History

NOBODY = np.empty(0, np.int64)


def test_a_round_in_which_nobody_was_moved_does_not_begin_the_cool_down_again() -> None:
    history = History(settle=60)
    history.plan(10)
    history.move(20, NOBODY)
    assert history.since_planned(25) == 15


def test_moves_begin_it_again_and_who_was_moved_settles() -> None:
    history = History(settle=60)
    history.plan(10)
    history.move(20, np.array([3, 5]))
    assert history.since_planned(25) == 5
    assert history.settling(79).tolist() == [3, 5]
    assert history.settling(80).tolist() == []
