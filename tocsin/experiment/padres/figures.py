"""Figures that the experiments of the PADRES evaluation share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tocsin.experiment.figures.lines import Axis, Points, lines
from tocsin.experiment.figures.style import panels
from tocsin.experiment.padres.course import OverlayCourse, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SECONDS: Final = Axis("seconds")


def edges_over_time(
    axes: Axes, title: str, course: OverlayCourse, value: Value, label: str, *, log: bool = False
) -> None:
    """One line for each edge."""
    series: dict[str, Points] = {}
    for broker in course.brokers:
        rows = [row for row in course.of_broker(broker) if value(row) > 0 or not log]
        series[broker] = [row.seconds for row in rows], [value(row) for row in rows]
    lines(axes, title, series, SECONDS, Axis(label, log=log))


def clusters_over_time(axes: Axes, title: str, course: OverlayCourse, value: Value, label: str) -> None:
    """One line for each cluster: the average of its edges."""
    found: dict[str, dict[float, list[float]]] = {}
    for at, rows in course.moments.items():
        for row in rows:
            found.setdefault(row.cluster, {}).setdefault(at, []).append(value(row))
    series: Mapping[str, Points] = {
        f"{head[:-1]}x": (list(times), [sum(values) / len(values) for values in times.values()])
        for head, times in found.items()
    }
    lines(axes, title, series, SECONDS, Axis(label))


def with_legend(number: int, *, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Panels whose lines are the same brokers; to be closed with :func:`add_legend`."""
    return panels(number, wide=3.5, high=2.6, rows=rows)


def add_legend(figure: Figure, axes: Axes) -> Figure:
    """One legend for all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(max(len(labels), 1), 8))
    return figure
