"""The paper's two kinds of figures: the load of each broker over time, and highest load, cov and moves compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tocsin.balance.account import rate
from tocsin.experiment.figures.bars import bars
from tocsin.experiment.figures.lines import Axis, Points, lines
from tocsin.experiment.figures.style import panels
from tocsin.experiment.series.course import Course
from tocsin.experiment.series.rows import Load
from tocsin.experiment.study import Grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MINUTES = Axis("minutes")
_UNITS = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"))


def unit(highest: float) -> tuple[float, str]:
    """In what a load of this size is best said: how many bytes per second it has, and its name."""
    return next(((size, name) for size, name in _UNITS if highest >= size), (1.0, "B/s"))


def distribution(shown: Mapping[str, Course]) -> Figure:
    """The load of every broker over time, one panel per run, at one scale."""
    highest = max((load.load for course in shown.values() for load in course.loads), default=1.0)
    size, name = unit(highest)
    figure, axes = panels(len(shown), wide=3.3, high=2.9)
    for number, (title, course) in enumerate(shown.items()):
        label = f"load of a broker, {name}" if number == 0 else ""
        lines(
            axes[number],
            f"({number + 1}) {title}",
            _brokers(course.loads, size),
            _MINUTES,
            Axis(label, top=highest / size),
        )
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 10))
    return figure


def comparison(shown: Mapping[str, Course]) -> Figure:
    """Highest load and cov over time, and all moves, of several runs."""
    highest = max((moment.highest for course in shown.values() for moment in course.moments), default=1.0)
    size, name = unit(highest)
    figure, axes = panels(3, wide=3.3, high=2.9)
    load = {title: _points(course, [m.highest / size for m in course.moments]) for title, course in shown.items()}
    spread = {title: _points(course, [m.cov for m in course.moments]) for title, course in shown.items()}
    lines(axes[0], "(1) highest load", load, _MINUTES, Axis(name, top=highest / size))
    lines(axes[1], "(2) cov", spread, _MINUTES, Axis("σ ÷ μ"))
    axes[1].set_ylim(bottom=0)
    bars(axes[2], "(3) moves", {title: course.moved for title, course in shown.items()}, "subscribers moved")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8))
    return figure


def table(caption: str, shown: Mapping[str, Course]) -> Grid:
    """The numbers by which runs are compared."""
    header = ["run", "highest load", "mean load", "highest ÷ mean", "cov", "moves"]
    return Grid(caption, header, [[title, *_cells(course)] for title, course in shown.items()])


def _cells(course: Course) -> list[str]:
    over = course.highest / course.mean if course.mean else 0.0
    return [rate(course.highest), rate(course.mean), f"{over:.2f}", f"{course.cov:.3f}", f"{course.moved:,}"]


def _points(course: Course, values: Sequence[float]) -> Points:
    return [moment.seconds / 60 for moment in course.moments], values


def _brokers(loads: Sequence[Load], size: float) -> dict[str, Points]:
    series: dict[str, tuple[list[float], list[float]]] = {}
    for load in loads:
        xs, ys = series.setdefault(load.broker, ([], []))
        xs.append(load.seconds / 60)
        ys.append(load.load / size)
    return dict(sorted(series.items(), key=lambda item: (len(item[0]), item[0])))
