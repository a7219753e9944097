from __future__ import annotations

import pytest

from tests.experiment.courses import course, steady
from tocsin.experiment.figures.style import use_style
from tocsin.experiment.seeds import split, with_seeds
from tocsin.experiment.series.course import RunKey, by_scheme, by_seed, courses
from tocsin.experiment.series.figures import comparison, distribution, table, unit
from tocsin.experiment.series.rows import LoadRow, Moment, moment
from tocsin.experiment.study import StudyData


def test_a_moment_is_made_of_the_loads_at_it() -> None:
    loads = [LoadRow("RR", "LDM", 10.0, name, 5, 1.0, out) for name, out in (("a", 99.0), ("b", 49.0))]
    assert moment(loads, 3) == Moment("RR", "LDM", 10.0, 100.0, 75.0, 25 / 75, 3)


def test_brokers_without_any_load_are_balanced() -> None:
    assert moment([LoadRow("RR", "LDM", 0.0, "a", 0, 0.0, 0.0)], 0).cov == 0.0


def test_runs_are_compared_by_their_second_half() -> None:
    changing = course([[300.0, 100.0], [300.0, 100.0], [150.0, 50.0], [110.0, 90.0]])
    assert changing.highest == pytest.approx((150 + 110) / 2)
    assert changing.mean == 100
    assert changing.cov == pytest.approx((0.5 + 0.1) / 2)


def test_moves_are_counted_in_all_and_from_a_moment_on() -> None:
    run = course([[1.0, 1.0]] * 4, [0, 50, 50, 70])
    assert (run.total_moves, run.moved_after(600), run.moved_after(1800)) == (70, 20, 0)
    assert run.first_moves() == 600
    assert steady(1, 1).first_moves() is None


def test_calm_begins_when_cov_is_never_above_again() -> None:
    run = course([[3.0, 1.0], [2.0, 2.0], [3.0, 1.0], [2.0, 2.0]])
    assert run.calm_from(0.15) == 1800
    assert run.calm_from(0.6) == 0
    assert course([[2.0, 2.0], [3.0, 1.0]]).calm_from(0.15) is None


def test_runs_are_told_apart_by_placement_and_scheme() -> None:
    rows = [Moment(place, scheme, 0.0, 1.0, 1.0, 0.0, 0) for place in ("RR", "NR") for scheme in ("LDM", "SDM")]
    assert set(courses(StudyData({Moment: rows}))) == {
        RunKey(place, scheme) for place in ("RR", "NR") for scheme in ("LDM", "SDM")
    }


def test_runs_with_several_seeds_are_grouped_by_scheme_and_by_seed() -> None:
    rows = [Moment("NR", scheme, 0.0, 1.0, 1.0, 0.0, 0, seed) for seed in (2, 1) for scheme in ("LDM", "SDM")]
    runs = courses(StudyData({Moment: rows}))
    assert {name: len(found) for name, found in by_scheme(runs).items()} == {"LDM": 2, "SDM": 2}
    assert by_scheme(runs)["LDM"][0] is runs[RunKey("NR", "LDM", 1)]
    assert by_seed(runs)[0] == {name: runs[RunKey("NR", name, 2)] for name in ("LDM", "SDM")}


def test_cells_of_the_first_seed_bear_no_number() -> None:
    cells = with_seeds(["a", "b"], first=3, count=2)
    assert cells == ["a", "b", "a, seed 4", "b, seed 4"]
    assert [split(cell, first=3) for cell in cells] == [("a", 3), ("b", 3), ("a", 4), ("b", 4)]


def test_populations_are_those_at_the_last_moment_that_is_not_later() -> None:
    assert course([[1.0, 1.0]] * 2, populations=[7, 3]).populations(900) == {"broker-0": 7, "broker-1": 3}


def test_figures_are_drawn_with_a_panel_per_run() -> None:
    runs = {"one": steady(3e6, 1e6), "other": steady(2e6, 2e6, 5)}
    with use_style():
        drawn = distribution(runs)
        compared = comparison({"one": [runs["one"], steady(4e6, 1e6)], "other": [runs["other"]]})
    assert len(drawn.axes) == 2
    assert [axes.get_title(loc="left") for axes in compared.axes] == [
        "(1) highest load",
        "(2) cov",
        "(3) moves",
    ]
    assert table("", {"other": [runs["other"]]}).rows == [["other", "2 MB/s", "2 MB/s", "1.00", "0.000", "5"]]


def test_a_table_says_the_median_of_all_seeds_and_from_where_to_where() -> None:
    seeds = [steady(3e6, 1e6, 5), steady(2e6, 2e6, 7), steady(2e6, 2e6, 8)]
    assert table("", {"some": seeds}).rows[0][3:] == ["1.00 (1.00–1.50)", "0.000 (0.000–0.500)", "7 (5–8)"]


@pytest.mark.parametrize(("load", "name"), [(10.0, "B/s"), (2e3, "kB/s"), (2e6, "MB/s"), (2e9, "GB/s")])
def test_loads_are_said_in_units_that_fit(load: float, name: str) -> None:
    assert unit(load)[1] == name
