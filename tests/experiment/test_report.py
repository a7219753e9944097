from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.experiment.test_conduct import run
from tests.experiment.trial import Trial
from tocsin.experiment.figures.style import panels, save, use_style
from tocsin.experiment.latency.study import Latency
from tocsin.experiment.scale.study import Scale
from tocsin.experiment.simulation.study import Thousands
from tocsin.experiment.study import Study
from tocsin.experiment.testbed.study import Prototype
from tocsin.experiment.verdict import ClaimVerdict, Holds, at_this_size

_VOID = {"meta", "br", "hr", "img", "input", "link", "use"}


class Nesting(HTMLParser):
    """Notices tags that are not closed in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID and (not self.open or self.open.pop() != tag):
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run(Trial(), tmp_path_factory.mktemp("run")).report.read_text(encoding="utf-8")


def test_a_report_loads_nothing_from_elsewhere(page: str) -> None:
    assert re.findall(r"""(?:src|href)\s*=\s*["'](?!#)[^"']*""", page) == []
    assert "@import" not in page
    assert re.findall(r"url\((?!#)", page) == []


def test_a_report_is_well_formed(page: str) -> None:
    nesting = Nesting()
    nesting.feed(page)
    assert (nesting.open, nesting.wrong) == ([], [])


def test_a_report_says_what_was_run(page: str) -> None:
    for fact in ("tocsin experiment trial", "Python 3", "numbers", "tocsin 0."):
        assert fact in page


def test_text_is_text_and_never_markup(page: str) -> None:
    assert "See &lt;below&gt;." in page
    assert "any &lt;number&gt;" in page
    assert "Squares &amp; roots" in page


def test_figures_are_in_the_page_and_take_its_colours(page: str) -> None:
    assert page.count('<svg role="img" aria-label="Squares &amp; more" style="max-width: ') == 1
    assert "var(--ink)" in page[page.index("<svg") : page.index("</svg>")]


def test_a_report_ends_with_the_claims(page: str) -> None:
    end = page[page.rindex("<h2>") :]
    assert end.startswith("<h2>Claims</h2>")
    assert "squares are at least 1" in end
    assert '<td class="yes">yes</td>' in end


def test_a_claim_that_does_not_hold_says_why(tmp_path: Path) -> None:
    page = run(Trial(numbers=(0,)), tmp_path).report.read_text(encoding="utf-8")
    assert '<td class="no">no</td>' in page
    assert "0 was squared" in page


def test_a_small_run_says_so_on_top_and_judges_nothing_that_it_cannot(tmp_path: Path) -> None:
    study = Trial()
    study.smaller = "3 of 3,000 <numbers>"
    outcome = run(study, tmp_path)
    page = outcome.report.read_text(encoding="utf-8")
    assert page.index("This is a small run, with 3 of 3,000 &lt;numbers&gt;") < page.index("<h2>")
    assert {verdict.holds for verdict in outcome.verdicts} == {Holds.UNJUDGED}
    assert "this run has 3 of 3,000 &lt;numbers&gt;, and cannot tell" in page
    assert '<td class="yes">' not in page


@pytest.mark.parametrize("held", list(Holds))
def test_a_claim_for_any_size_is_judged_by_a_small_run_too(held: Holds) -> None:
    verdict = ClaimVerdict("nobody misses anything", "5 notes", held, sizeless=True)
    assert at_this_size(verdict, "4 of 400") == verdict
    sized = at_this_size(verdict._replace(sizeless=False), "4 of 400")
    assert sized.holds is (Holds.UNKNOWN if held is Holds.UNKNOWN else Holds.UNJUDGED)
    assert sized.measured == "5 notes"


@pytest.mark.parametrize(
    ("study", "small"),
    [
        (Thousands(), False),
        (Thousands(subscribers=5_000), True),
        (Thousands(quick=True), True),
        (Scale(), False),
        (Scale(quick=True), True),
        (Latency(), False),
        (Latency(quick=True), True),
        (Prototype(), False),
        (Prototype(quick=True), True),
    ],
)
def test_every_experiment_knows_when_it_is_small(study: Study, small: bool) -> None:
    assert bool(study.smaller) is small


def test_the_same_figure_is_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        run(Trial(), tmp_path / name)
    one, other = ((tmp_path / name / "figures" / "squares.svg").read_bytes() for name in ("one", "other"))
    assert one == other


def test_numbers_on_axes_keep_all_their_digits(tmp_path: Path) -> None:
    with use_style():
        figure, axes = panels(1)
        axes[0].set_xticks([0.125, 0.12345])
        svg = save(figure, tmp_path / "ticks")
    assert ">0.12345</text>" in svg
    assert re.search(r"[ \"]\d+\.\d{3}", svg) is None
