from __future__ import annotations

from tests.experiment.courses import course, steady
from tocsin.experiment.simulation import claims
from tocsin.experiment.simulation.claims import GSH, LDM, MIGRATE, NONE, OURS
from tocsin.experiment.verdict import Holds


def test_a_crowded_and_an_empty_broker_are_found_at_any_scale() -> None:
    crowded = course([[1.0] * 3] * 2, populations=[2100, 7500, 400])
    small = course([[1.0] * 3] * 2, populations=[21, 75, 4])
    even = course([[1.0] * 3] * 2, populations=[3400, 3300, 3300])
    assert claims.skewed([{NONE: crowded}]).holds is Holds.YES
    assert claims.skewed([{NONE: small}]).holds is Holds.YES
    assert claims.skewed([{NONE: even}]).holds is Holds.NO
    assert claims.skewed([]).holds is Holds.UNKNOWN


def test_about_half_is_up_to_six_tenths() -> None:
    runs = {NONE: steady(300, 100), LDM: steady(150, 100), GSH: steady(200, 100)}
    assert claims.halved([runs], LDM).holds is Holds.YES
    too_little = claims.halved([runs], GSH)
    assert too_little.holds is Holds.NO
    assert too_little.why == "the highest load cannot fall below the mean, 0.67"


def test_a_shuffle_is_done_within_a_minute_and_ldm_later() -> None:
    quick = course([[3.0, 1.0], [2.0, 2.0], [2.0, 2.0], [2.0, 2.0]], [0, 9, 9, 9])
    slow = course([[3.0, 1.0], [3.0, 1.0], [2.0, 2.0], [2.0, 2.0]], [0, 3, 6, 9])
    assert claims.at_once([{GSH: quick, LDM: slow}]).holds is Holds.YES
    assert claims.at_once([{GSH: slow, LDM: quick}]).holds is Holds.NO
    assert claims.at_once([{GSH: quick, LDM: quick}]).holds is Holds.PARTLY


def test_moves_long_after_the_first_are_moves_afterwards() -> None:
    assert claims.no_more([{GSH: course([[1.0, 1.0]] * 3, [0, 9, 9])}]).holds is Holds.YES
    again = claims.no_more([{GSH: course([[1.0, 1.0]] * 3, [0, 9, 12])}])
    assert again.holds is Holds.NO
    assert "12 moves in all, 3 of them" in again.measured


def test_better_means_a_lower_cov() -> None:
    assert claims.better([{GSH: steady(11, 10), LDM: steady(13, 10)}]).holds is Holds.YES
    assert claims.better([{GSH: steady(13, 10), LDM: steady(11, 10)}]).holds is Holds.NO


def test_a_sweep_must_rise_and_fall_all_along() -> None:
    fine, middle, coarse = steady(11, 10, 30), steady(12, 10, 20), steady(13, 10, 10)
    assert claims.finer([{"a": fine, "b": middle, "c": coarse}], "abc").holds is Holds.YES
    assert claims.dearer("α", [{"a": fine, "b": middle, "c": coarse}], "abc").holds is Holds.YES
    assert claims.finer([{"a": middle, "b": fine, "c": coarse}], "abc").holds is Holds.PARTLY
    assert claims.dearer("α", [{"a": coarse, "b": fine}], "ab").holds is Holds.NO
    assert claims.finer([{"a": fine}], "ab").holds is Holds.UNKNOWN
    assert claims.finer([], "ab").holds is Holds.UNKNOWN
    assert claims.dearer("β", [{"a": fine, "b": fine}], "ab").holds is Holds.PARTLY


def test_as_good_as_gsh_is_within_a_twentieth() -> None:
    assert claims.as_good([{GSH: steady(100, 100), "a": steady(104, 96)}], "a").holds is Holds.YES
    assert claims.as_good([{GSH: steady(100, 100), "a": steady(110, 90)}], "a").holds is Holds.NO


def test_ours_must_be_as_low_with_a_quarter_of_the_moves() -> None:
    greedy = {GSH: steady(100, 100, 900)}
    assert claims.ours([{OURS: steady(101, 99, 200), **greedy}], OURS).holds is Holds.YES
    assert claims.ours([{OURS: steady(101, 99, 300), **greedy}], OURS).holds is Holds.PARTLY
    assert claims.ours([{MIGRATE: steady(110, 90, 200), **greedy}], MIGRATE).holds is Holds.PARTLY
    assert claims.ours([greedy], OURS).holds is Holds.UNKNOWN


def test_a_claim_must_hold_with_every_seed() -> None:
    even, uneven = {GSH: steady(11, 10), LDM: steady(13, 10)}, {GSH: steady(14, 10), LDM: steady(11, 10)}
    assert claims.better([even, even]).holds is Holds.YES
    assert claims.better([even, uneven]).holds is Holds.PARTLY
    assert claims.better([even, {GSH: steady(14, 10)}]).holds is Holds.YES


def test_over_seeds_the_median_is_said_and_what_they_differ_by() -> None:
    runs = [{GSH: steady(100, 100), "a": steady(highest, 100)} for highest in (101, 103, 110)]
    assert "highest load × 1.030 (1.010–1.100) of GSH's" in claims.as_good(runs, "a").measured


def test_seeds_with_which_loads_never_come_to_rest_are_counted() -> None:
    calm = course([[3.0, 1.0], [2.0, 2.0], [2.0, 2.0], [2.0, 2.0]], [0, 9, 9, 9])
    restless = course([[3.0, 1.0]] * 4, [0, 9, 9, 9])
    said = claims.at_once([{GSH: calm, LDM: calm}, {GSH: restless, LDM: restless}]).measured
    assert "for good from minute 10.0, with 1 seeds never with GSH" in said
