"""Who is blamed how often, and who is to be tried by itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tocsin.data.channels.strikes import Strikes
from tocsin.data.ids import NONE, ascending
from tocsin.data.subscriptions import Segments
from tocsin.data.subscriptions.rows import BE


def held(*ids: int) -> Segments:
    return Segments(None, 0, pa.table({BE: pa.array(ids, pa.int64())}), pa.array([], pa.int64()), len(ids), 1)


def on_trial(strikes: Strikes, *ids: int, now: float = 0.0) -> list[int]:
    return [int(be) for be in strikes.on_trial("c", ascending(ids), now)]


def test_nobody_is_on_trial_while_nobody_has_failed() -> None:
    strikes = Strikes()
    assert not strikes.is_wary("c", 0.0)
    assert on_trial(strikes, 1, 2, 3) == []


def test_whoever_subscribes_after_somebody_was_blamed_is_on_trial_for_a_while() -> None:
    strikes = Strikes()
    strikes.served("c", NONE, held(1, 2, 3))
    strikes.suspect("c", [2], until=60.0)
    assert on_trial(strikes, 1, 2, 3, 4) == [2, 4]
    strikes.served("c", NONE, held(1, 2, 3, 4))
    assert on_trial(strikes, 1, 2, 3, 4, 5) == [2, 5]
    assert on_trial(strikes, 1, 2, 3, 4, 5, now=61.0) == [2]
    assert not strikes.is_wary("d", 0.0)


def test_who_was_blamed_is_on_trial_until_it_has_a_result() -> None:
    strikes = Strikes()
    strikes.suspect("c", [2, 3], until=0.0)
    strikes.served("c", np.array([3]), held(1, 2, 3))
    assert strikes.is_wary("c", 1.0)
    assert on_trial(strikes, 1, 2, 3, now=1.0) == [2]
    strikes.served("c", np.array([2]), held(1, 2, 3))
    assert not strikes.is_wary("c", 1.0)


def test_nothing_is_remembered_of_who_has_given_it_up() -> None:
    strikes = Strikes()
    for _ in range(2):
        strikes.strike("c", [2])
    strikes.suspect("c", [2], until=0.0)
    assert on_trial(strikes, 1, now=1.0) == []
    assert on_trial(strikes, 1, 2, now=1.0) == []
    assert strikes.strike("c", [2]) == set()
