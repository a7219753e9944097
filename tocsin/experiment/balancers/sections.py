"""The report of ``balancers``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from tocsin.experiment.balancers.names import BALANCERS, NONE, SETUPS
from tocsin.experiment.balancers.outcome import BalancerOutcome, LoadCourse, matchings, outcomes, traffics
from tocsin.experiment.balancers.rows import BalancingRow, BoundRow, BrokerRow
from tocsin.experiment.figures.lines import Axis, Points, lines
from tocsin.experiment.figures.style import INK, panels
from tocsin.experiment.study import Drawing, Grid, ReportSection, StudyData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SECONDS: Final = Axis("seconds")
_FIRST, _SECOND = "until more is published", "from then on"


def sections(data: StudyData) -> list[ReportSection]:
    """Over time, and in the end."""
    if not data.of(BrokerRow):
        return []
    return [
        ReportSection(
            "Over time",
            "Averages over a minute. The dotted line is the lower bound of the highest traffic. Matching above 1 is "
            "more than a processor can do: what it has to match waits, longer and longer.",
            [
                Drawing(
                    "balancers",
                    "The highest traffic of a broker over its bandwidth, the highest part of a processor's time that "
                    "matching takes, and all moves so far; above with unequal brokers, below with equal ones.",
                    lambda: _figure(data),
                )
            ],
        ),
        ReportSection(
            "In the end",
            "Utilisations are averages over the last minutes of each half. Messages of the coordinator's balancer are "
            "counted by its protocol, those of PADRES's one by one as they are sent.",
            grids=[_grid(list(outcomes(data)))],
        ),
    ]


def _figure(data: StudyData) -> Figure:
    setups = [setup for setup in SETUPS if any(row.setup == setup for row in data.of(BrokerRow))]
    figure, axes = panels(3 * len(setups), wide=3.6, high=2.6, rows=len(setups))
    for at, setup in enumerate(setups):
        traffic, matching, moves = axes[3 * at : 3 * at + 3]
        courses = {name: LoadCourse.of(data.of(BrokerRow), setup, name) for name in BALANCERS}
        drawn = {name: course for name, course in courses.items() if course.moments}
        share = Axis("highest ÷ bandwidth", log=True)
        lines(traffic, f"{setup}: traffic", _highest(drawn, traffics), _SECONDS, share)
        _draw_bounds(traffic, [row for row in data.of(BoundRow) if row.setup == setup])
        busy = Axis("highest part of the time", log=True)
        lines(matching, "matching", _highest(drawn, matchings), _SECONDS, busy)
        lines(moves, "moves", _moves(data, setup), _SECONDS, Axis("subscribers"))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _highest(
    courses: dict[str, LoadCourse], loads: Callable[[Sequence[Sequence[BrokerRow]]], list[float]]
) -> dict[str, Points]:
    found: dict[str, Points] = {}
    for name, course in courses.items():
        highest = [max(loads(course.last_minute(at))) for at in range(len(course.moments))]
        shown = [(moment, value) for moment, value in zip(course.moments, highest, strict=True) if value > 0]
        found[name] = [moment for moment, _ in shown], [value for _, value in shown]
    return found


def _draw_bounds(axes: Axes, bounds: Sequence[BoundRow]) -> None:
    for row in bounds:
        axes.plot([row.settles, row.until], [row.bound, row.bound], color=INK, linewidth=0.9, linestyle=(0, (1, 2)))


def _moves(data: StudyData, setup: str) -> dict[str, Points]:
    found: dict[str, Points] = {}
    for name in BALANCERS:
        own = [row for row in data.of(BalancingRow) if (row.setup, row.balancer) == (setup, name)]
        if own:
            found[name] = [row.seconds for row in own], list(accumulate(row.moves for row in own))
    return found


def _grid(found: Sequence[BalancerOutcome]) -> Grid:
    header = [
        "brokers",
        "half",
        "balancer",
        "highest traffic",
        "÷ bound",
        "cov",
        "highest matching",
        "moves",
        "overhead",
        "seconds to balance",
    ]
    return Grid("Every balancer in both halves", header, [_cells(outcome) for outcome in found])


def _cells(outcome: BalancerOutcome) -> list[str]:
    return [
        outcome.half.setup.partition(" ")[0],
        _SECOND if outcome.half.begins else _FIRST,
        outcome.balancer,
        f"{outcome.traffic:.3f}",
        f"{outcome.ratio:.2f}",
        f"{outcome.cov:.2f}",
        f"{outcome.matching:.2f}",
        f"{outcome.moves:,}",
        f"{outcome.overhead:.2%}",
        _duration(outcome),
    ]


def _duration(outcome: BalancerOutcome) -> str:
    if outcome.balancer == NONE:
        return ""
    return "not at rest" if outcome.seconds is None else f"{outcome.seconds:,.0f}"
