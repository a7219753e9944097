from __future__ import annotations

from tocsin.experiment.latency import claims
from tocsin.experiment.latency.rows import Delay
from tocsin.experiment.verdict import Holds


def delay(scheme: str, utilisation: float, hottest: float, p99: float) -> Delay:
    return Delay(scheme, utilisation, 1e6, hottest, p99 / 2, p99, 0)


EASY = delay(claims.NONE, 0.3, 0.8, 0.1)
HARD = delay(claims.NONE, 0.7, 1.8, 60.0)


def test_waiting_grows_with_load_under_a_skewed_placement() -> None:
    assert claims.overloaded([EASY, HARD]).holds is Holds.YES
    assert claims.overloaded([EASY, delay(claims.NONE, 0.7, 0.9, 0.15)]).holds is Holds.NO
    assert claims.overloaded([EASY]).holds is Holds.UNKNOWN


def test_balancing_must_take_the_waiting_away_where_there_is_room() -> None:
    assert claims.relieved([HARD, delay("LDM", 0.7, 0.8, 0.2)]).holds is Holds.YES
    assert claims.relieved([HARD, delay("LDM", 0.7, 1.2, 50.0)]).holds is Holds.NO
    assert claims.relieved([EASY, delay("LDM", 0.3, 0.4, 0.1)]).holds is Holds.UNKNOWN


def test_balancing_must_not_slow_down_what_is_quick() -> None:
    assert claims.untouched([EASY, delay("LDM", 0.3, 0.4, 0.1)]).holds is Holds.YES
    assert claims.untouched([EASY, delay("LDM", 0.3, 0.4, 0.5)]).holds is Holds.NO
