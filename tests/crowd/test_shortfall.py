"""A machine that is too small for what was asked says so, and which part of it."""

from __future__ import annotations

import re

import pytest

from tocsin.crowd.messages import CrowdFigures, add_figures
from tocsin.crowd.shortfall import Strain, shortfall

KEEPING_UP = CrowdFigures(withheld=2, answers={30: 98}, late={1: 96, 200: 2})


def test_a_machine_that_keeps_up_says_nothing() -> None:
    assert shortfall(KEEPING_UP, Strain(lag=4.0, executions=100, missed=3)) == ""
    assert shortfall(CrowdFigures(), Strain()) == ""


@pytest.mark.parametrize(
    ("figures", "strain", "said"),
    [
        (CrowdFigures(late={0: 90, 120: 10}), Strain(), "the load generator, which sent one in twenty .* 1.2 s late"),
        (
            CrowdFigures(late={0: 70}, withheld=30, answers={140: 70}),
            Strain(),
            "the feeds, which answered .*1.4 s.* 30%",
        ),
        (KEEPING_UP, Strain(lag=25.0), "the feeds, which stored what was published up to 25 s later"),
        (KEEPING_UP, Strain(executions=60, missed=40), "the executions, of which 40 in 100 were left out"),
    ],
)
def test_each_part_that_does_not_keep_up_is_named(figures: CrowdFigures, strain: Strain, said: str) -> None:
    sentence = shortfall(figures, strain)
    assert sentence.startswith("This machine is too small for what was asked of it. Not keeping up: ")
    assert re.search(said, sentence)


def test_what_is_too_late_goes_by_how_fast_everything_happens() -> None:
    assert shortfall(KEEPING_UP, Strain(lag=4.0), speed=2.0) == ""
    assert "up to 4 s later" in shortfall(KEEPING_UP, Strain(lag=4.0), speed=6.0)


def test_executions_are_counted_from_the_beginning_of_the_run() -> None:
    assert Strain(3.0, 90, 8).after(Strain(1.0, 30, 8)) == Strain(3.0, 60, 0)


def test_figures_of_processes_are_added_up() -> None:
    one = CrowdFigures(held=2, published={"locations": 3}, waits={10: 1, 20: 2})
    other = CrowdFigures(held=5, published={"locations": 4, "reports": 1}, waits={20: 3})
    assert add_figures([one, other]) == CrowdFigures(
        held=7, published={"locations": 7, "reports": 1}, waits={10: 1, 20: 5}
    )


def test_all_parts_that_do_not_keep_up_are_named_in_one_sentence() -> None:
    sentence = shortfall(CrowdFigures(late={120: 10}), Strain(lag=25.0, executions=60, missed=40))
    assert re.search("the load generator, .*; the feeds, .*; the executions, ", sentence)
