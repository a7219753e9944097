"""The report of ``padres-local``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tocsin.experiment.figures.lines import Axis, Points, bands, level, lines
from tocsin.experiment.figures.scatter import agreement
from tocsin.experiment.figures.style import panels
from tocsin.experiment.padres.accuracy import Accuracy, accuracy, select_undisturbed
from tocsin.experiment.padres.course import OverlayCourse, input_of, output_of
from tocsin.experiment.padres.figures import SECONDS, add_legend, edges_over_time, with_legend
from tocsin.experiment.padres.local.claims import CROWDED, settled_span
from tocsin.experiment.padres.local.names import MAIN, samples_of, trigger_of
from tocsin.experiment.padres.recorder import ACCEPTING, OFFLOADING
from tocsin.experiment.padres.rows import EdgeRow, EstimateRow, MessageRow
from tocsin.experiment.study import Drawing, Grid, ReportSection, StudyData

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sections(data: StudyData) -> list[ReportSection]:
    """Loads, delays, subscribers and messages of the main run, thresholds, and estimates."""
    edges, messages, estimates = data.of(EdgeRow), data.of(MessageRow), data.of(EstimateRow)
    main = OverlayCourse.of(edges, MAIN)
    made = []
    if main:
        made += [_loads(main), _effects(main, messages)]
    if len(_triggers(edges)) > 1:
        made.append(_thresholds(edges))
    if estimates:
        made.append(_estimates(estimates))
    return made


def _loads(course: OverlayCourse) -> ReportSection:
    what = "Figures 6a, 6b and 6c: input ratio, output ratio and matching delay of each edge."
    text = (
        "Ratios are moving averages over 30 seconds, as the brokers say them to each other. Everybody joins B1 between "
        "10 and 1,010 seconds; at 3,000 seconds half of the publishers double their rates."
    )
    header = ["seconds", "edge", "input", "output", "matching delay", "subscribers", "delivery"]
    moments = [at for at in course.moments if at % 500 == 0]
    rows = [_cells(row) for at in moments for row in course.moments[at]]
    drawing = Drawing("padres-local-loads", what, lambda: _draw_loads(course))
    return ReportSection("Load of each edge", text, [drawing], [Grid("Every 500 seconds", header, rows)])


def _draw_loads(course: OverlayCourse) -> Figure:
    figure, axes = with_legend(3)
    edges_over_time(axes[0], "(a) input", course, input_of, "input ratio")
    edges_over_time(axes[1], "(b) output", course, output_of, "output ratio")
    edges_over_time(axes[2], "(c) matching", course, lambda row: 1000 * row.delay, "milliseconds")
    return add_legend(figure, axes[0])


def _effects(course: OverlayCourse, messages: Sequence[MessageRow]) -> ReportSection:
    what = (
        "Figures 6d, 6e and 6f: delivery delay and subscribers of each edge, and the balancer's part of all messages."
    )
    text = (
        "A delivery takes from the publisher's program to the subscriber's. The balancer's messages are load messages, "
        "those of sessions, and all that migrations bring; the head's marks, by which cursors go on, are not."
    )
    return ReportSection(
        "What comes of it", text, [Drawing("padres-local-effects", what, lambda: _draw_effects(course, messages))]
    )


def _draw_effects(course: OverlayCourse, messages: Sequence[MessageRow]) -> Figure:
    figure, axes = with_legend(3)
    edges_over_time(axes[0], "(d) delivery", course, lambda row: row.delivery, "seconds", log=True)
    edges_over_time(axes[1], "(e) subscribers", course, lambda row: row.subscribers, "subscribers")
    own = [row for row in messages if row.run == MAIN and row.messages]
    series: dict[str, Points] = {
        "balancer": ([row.seconds for row in own], [100 * row.balancing / row.messages for row in own])
    }
    lines(axes[2], "(f) overhead", series, SECONDS, Axis("% of all messages", log=True))
    return add_legend(figure, axes[0])


def _thresholds(rows: Sequence[EdgeRow]) -> ReportSection:
    what = "Figure 6h: the largest difference between two edges once balanced, by the threshold."
    drawing = Drawing("padres-local-thresholds", what, lambda: _draw_thresholds(rows))
    return ReportSection("Thresholds", "Below the line the threshold is kept.", [drawing])


def _draw_thresholds(rows: Sequence[EdgeRow]) -> Figure:
    found = _triggers(rows)
    triggers = sorted(found)
    spans = {trigger: settled_span(found[trigger]) for trigger in triggers}
    series: dict[str, Points] = {
        name: (triggers, [found[trigger].difference(value, *spans[trigger]) for trigger in triggers])
        for name, value in (("input", input_of), ("output", output_of))
    }
    series["threshold"] = triggers, triggers
    figure, axes = panels(1, wide=4.4, high=3.0)
    lines(axes[0], "", series, Axis("threshold"), Axis("largest difference"), marked=True)
    return add_legend(figure, axes[0])


def _estimates(rows: Sequence[EstimateRow]) -> ReportSection:
    what = "Figures 7a and 7b: input ratios after sessions, estimated and counted; and the error by samples taken."
    text = (
        "Each point is a broker of a session. What is estimated while subscribers join B1 is too low, for nobody can "
        "know of those to come. An error is the difference over the larger of the two; brokers with an input ratio "
        "below 0.02 are left out of figure 7b and the table."
    )
    header = ["samples", "estimates", "mean error", "deviation", "accuracy"]
    grid = Grid("Errors by samples", header, [_error_cells(samples, one) for samples, one in _by_samples(rows)])
    return ReportSection(
        "Estimates", text, [Drawing("padres-local-estimates", what, lambda: _draw_estimates(rows))], [grid]
    )


def _draw_estimates(rows: Sequence[EstimateRow]) -> Figure:
    figure, axes = panels(2, wide=4.4, high=3.2)
    own = [row for row in rows if row.run == MAIN]
    agreement(axes[0], "(a) the run as in the paper", _kinds(own), Axis("counted"), Axis("estimated"))
    axes[0].legend()
    found = _by_samples(rows)
    xs = [float(samples) for samples, _ in found]
    middle = [100 * one.error for _, one in found]
    lines(axes[1], "(b) by samples", {"mean": (xs, middle)}, Axis("samples", log=True), Axis("error, %"), marked=True)
    around = [100 * one.deviation for _, one in found]
    lows = [one - by for one, by in zip(middle, around, strict=True)]
    highs = [one + by for one, by in zip(middle, around, strict=True)]
    bands(axes[1], {"mean": (xs, lows, highs)})
    level(axes[1], 0.0, "")
    return figure


def _kinds(rows: Sequence[EstimateRow]) -> dict[str, Points]:
    """The point styles of figure 7a."""
    kinds = {
        "offloading broker": [row for row in rows if row.role == OFFLOADING and not _is_disturbed(row)],
        "load-accepting broker": [row for row in rows if row.role == ACCEPTING and not _is_disturbed(row)],
        "B1 while subscribers join": [row for row in rows if row.role == OFFLOADING and _is_disturbed(row)],
        "B1's load-accepting broker then": [row for row in rows if row.role == ACCEPTING and _is_disturbed(row)],
    }
    return {name: ([row.actual for row in some], [row.estimated for row in some]) for name, some in kinds.items()}


def _is_disturbed(row: EstimateRow) -> bool:
    return row.joining and row.offloader == CROWDED


def _by_samples(rows: Sequence[EstimateRow]) -> list[tuple[int, Accuracy]]:
    runs = {samples_of(run): run for run in dict.fromkeys(row.run for row in rows)}
    found = {samples: accuracy(select_undisturbed(rows, run)) for samples, run in runs.items() if samples is not None}
    return sorted((samples, one) for samples, one in found.items() if one)


def _triggers(rows: Sequence[EdgeRow]) -> dict[float, OverlayCourse]:
    runs = {trigger_of(run): run for run in dict.fromkeys(row.run for row in rows)}
    return {trigger: OverlayCourse.of(rows, run) for trigger, run in runs.items() if trigger is not None}


def _cells(row: EdgeRow) -> list[str]:
    return [
        f"{row.seconds:,.0f}",
        row.broker,
        f"{row.input:.2f}",
        f"{row.output:.2f}",
        f"{1000 * row.delay:.0f} ms",
        f"{row.subscribers:,}",
        f"{row.delivery:.3g} s",
    ]


def _error_cells(samples: int, one: Accuracy) -> list[str]:
    return [str(samples), str(one.estimates), f"{one.error:+.1%}", f"{one.deviation:.1%}", f"{one.accuracy:.1%}"]
