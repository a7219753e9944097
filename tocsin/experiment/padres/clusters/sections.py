"""The report of ``padres-global``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tocsin.experiment.figures.lines import Axis, Points, lines
from tocsin.experiment.padres.course import OverlayCourse, input_of, output_of
from tocsin.experiment.padres.figures import SECONDS, add_legend, clusters_over_time, edges_over_time, with_legend
from tocsin.experiment.padres.rows import EdgeRow, MessageRow
from tocsin.experiment.study import Drawing, Grid, ReportSection, StudyData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAIN: Final = "as in the paper"


def sections(data: StudyData) -> list[ReportSection]:
    """Averages of clusters, and what comes of it."""
    course = OverlayCourse.of(data.of(EdgeRow), MAIN)
    return [_loads(course), _effects(course, data.of(MessageRow))] if course else []


def _loads(course: OverlayCourse) -> ReportSection:
    what = "Figures 8a, 8b and 8c: input ratio, output ratio and matching delay, averages of each cluster's edges."
    drawing = Drawing("padres-global-loads", what, lambda: _draw_loads(course))
    header = ["seconds", "cluster", "input", "output", "matching delay", "subscribers"]
    moments = [at for at in course.moments if at % 1000 == 0]
    rows = [cells for at in moments for cells in _cluster_cells(course.moments[at])]
    return ReportSection("Load of each cluster", "", [drawing], [Grid("Every 1,000 seconds", header, rows)])


def _draw_loads(course: OverlayCourse) -> Figure:
    figure, axes = with_legend(3)
    clusters_over_time(axes[0], "(a) input", course, input_of, "input ratio")
    clusters_over_time(axes[1], "(b) output", course, output_of, "output ratio")
    clusters_over_time(axes[2], "(c) matching", course, lambda row: 1000 * row.delay, "milliseconds")
    return add_legend(figure, axes[0])


def _effects(course: OverlayCourse, messages: Sequence[MessageRow]) -> ReportSection:
    what = "Delivery delay and subscribers of each edge, and which clusters are in a session with each other."
    drawing = Drawing("padres-global-effects", what, lambda: _draw_effects(course, messages))
    return ReportSection("What comes of it", "The paper has no such figures.", [drawing])


def _draw_effects(course: OverlayCourse, messages: Sequence[MessageRow]) -> Figure:
    figure, axes = with_legend(3)
    edges_over_time(axes[0], "delivery", course, lambda row: row.delivery, "seconds", log=True)
    edges_over_time(axes[1], "subscribers", course, lambda row: row.subscribers, "subscribers")
    own = [row for row in messages if row.run == MAIN]
    pairs = sorted({pair for row in own for pair in row.allied.split()})
    series: dict[str, Points] = {}
    for number, pair in enumerate(pairs):
        at = [row.seconds for row in own]
        series[pair] = at, [number + 0.8 * (pair in row.allied.split()) for row in own]
    names = Axis("")
    lines(axes[2], "sessions between clusters", series, SECONDS, names)
    axes[2].set_yticks([number + 0.4 for number in range(len(pairs))], pairs)
    return add_legend(figure, axes[0])


def _cluster_cells(rows: Sequence[EdgeRow]) -> list[list[str]]:
    made = []
    for cluster in dict.fromkeys(row.cluster for row in rows):
        own = [row for row in rows if row.cluster == cluster]
        made.append(
            [
                f"{own[0].seconds:,.0f}",
                f"{cluster[:-1]}x",
                f"{sum(row.input for row in own) / len(own):.2f}",
                f"{sum(row.output for row in own) / len(own):.2f}",
                f"{1000 * sum(row.delay for row in own) / len(own):.0f} ms",
                f"{sum(row.subscribers for row in own):,}",
            ]
        )
    return made
