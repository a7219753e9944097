"""The report of ``testbed``, in the order of the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tocsin.balance.model.units import rate
from tocsin.experiment.figures.bars import bars
from tocsin.experiment.figures.style import panels
from tocsin.experiment.series.course import Course, RunKey, by_scheme
from tocsin.experiment.series.figures import comparison, distribution, table
from tocsin.experiment.study import Drawing, Grid, ReportSection
from tocsin.experiment.testbed.rows import RunSummary
from tocsin.experiment.testbed.soundness import stalled_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Courses = Mapping[RunKey, Course]

_PLAIN: Final[Sequence[str]] = ("no balancing", "LDM", "SDM")
_NAMES: Final = {"RND": "random", "RR": "round robin", "NR": "nearest broker", "LL": "least loaded"}
# The paper's figures of each placement: distribution, comparison.
_FIGURES: Final = {"RND": ("Figure 5", "Figure 6"), "RR": ("Figure 7", ""), "NR": ("Figure 8", "Figure 10")}
_CAPTION: Final = "Means from the middle of the run to its end, and all moves of the run; of several seeds the medians"


def sections(courses: Courses, summaries: Sequence[RunSummary]) -> list[ReportSection]:
    """A part for each placement that was run, the moves of all, and what was delivered."""
    places = [place for place in _NAMES if any(key.placement == place for key in courses)]
    parts = [_placement(courses, place) for place in places]
    if len(places) > 1:
        parts.append(_moves(courses))
    return [*parts, _delivery_section(summaries)] if summaries else parts


def _placement(courses: Courses, place: str) -> ReportSection:
    runs = by_scheme({key: course for key, course in courses.items() if key.placement == place})
    plain = {name: runs[name][0] for name in _PLAIN if name in runs}
    other = {name: found[0] for name, found in runs.items() if name not in _PLAIN}
    loads, compared = _FIGURES.get(place, ("", ""))
    drawings = []
    if plain:
        drawings.append(_loads(f"testbed-{place.lower()}-loads", loads, plain, place))
    if other:
        shuffled = "Figure 9" if place == "NR" else ""
        drawings.append(_loads(f"testbed-{place.lower()}-shuffled", shuffled, other, place))
    drawings.append(_comparison(f"testbed-{place.lower()}-compared", compared, runs, place))
    return ReportSection(f"{place}: {_NAMES[place]}", "", drawings, [table(_CAPTION, runs)])


def _loads(name: str, number: str, runs: Mapping[str, Course], place: str) -> Drawing:
    what = f"Load of each broker over time, {_NAMES[place]} placement."
    return Drawing(name, _caption(number, what), lambda: distribution(runs))


def _comparison(name: str, number: str, runs: Mapping[str, Sequence[Course]], place: str) -> Drawing:
    if number == "Figure 10" and any(scheme not in _PLAIN for scheme in runs):
        number = "Figures 10 and 11"
    what = f"Highest load, cov and moves compared, {_NAMES[place]} placement."
    return Drawing(name, _caption(number, what), lambda: comparison(runs))


def _caption(number: str, what: str) -> str:
    return f"{number} of the paper. {what}" if number else what


def _moves(courses: Courses) -> ReportSection:
    text = "How many moves each placement needed."
    what = _caption("Figure 12", "All moves of a run, by placement.")
    return ReportSection("Moves by placement", text, [Drawing("testbed-moves", what, lambda: _draw_moves(courses))])


def _draw_moves(courses: Courses) -> Figure:
    least = min(key.seed for key in courses)
    first = {key: course for key, course in courses.items() if key.seed == least}
    schemes = [name for name in dict.fromkeys(key.scheme for key in first) if name != "no balancing"]
    figure, axes = panels(len(schemes), wide=2.2, high=2.6)
    for one, scheme in zip(axes, schemes, strict=True):
        moved = {key.placement: float(course.total_moves) for key, course in first.items() if key.scheme == scheme}
        bars(one, scheme, moved, "subscribers moved" if one is axes[0] else "")
    return figure


def _delivery_section(summaries: Sequence[RunSummary]) -> ReportSection:
    header = [
        *("run", "FE", "BE", "given up", "logouts", "reports", "locations", "notes", "bytes", "lost", "twice"),
        *("shuffles", "troubles", "p50, s", "p95, s", "generator late, p95, s"),
    ]
    rows = [
        [
            f"{one.placement} + {one.scheme}, seed {one.seed}",
            f"{one.frontend:,}",
            f"{one.backend:,}",
            f"{one.unsubscribed:,}",
            f"{one.logouts:,}",
            f"{one.reports:,}",
            f"{one.locations:,}",
            f"{one.notes:,}",
            rate(one.bytes).removesuffix("/s"),
            f"{one.lost:,}",
            f"{one.repeated:,}",
            f"{one.shuffles:,}",
            f"{one.troubles:,}",
            f"{one.median:.1f}",
            f"{one.ninety_fifth:.1f}",
            f"{one.late:.2f}",
        ]
        for one in summaries
    ]
    text = (
        "Subscriptions made and given up, what was published, and what subscribers were told while they were being "
        "moved; how long that took from the acknowledged report to the subscriber, in seconds of the clock, and how "
        "late the load generator itself was with what it published."
    )
    text += "".join(
        f"\n\n{one.placement} + {one.scheme}, seed {one.seed}: {said}"
        for one in summaries
        for said in (one.small, _missing_note(one))
        if said
    )
    late = stalled_runs(summaries)
    if late:
        names = ", ".join(f"{key.placement} + {key.scheme}, seed {key.seed}" for key in late)
        text += f"\n\nLeft out of the claims, because less than half as much was delivered as in the best run: {names}."
    return ReportSection("What was delivered", text, grids=[Grid("Every run", header, rows)])


def _missing_note(one: RunSummary) -> str:
    return f"{one.missing} subscribers are missing, whose process died." if one.missing else ""
