"""The paper's two kinds of figures: the load of each broker over time, and highest load, cov and moves compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from tocsin.balance.model.units import rate
from tocsin.experiment.figures.bars import bars
from tocsin.experiment.figures.lines import Axis, Points, bands, lines
from tocsin.experiment.figures.style import panels
from tocsin.experiment.series.course import Course
from tocsin.experiment.series.rows import LoadRow, Moment
from tocsin.experiment.series.spread import Spread, spread
from tocsin.experiment.study import Grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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


def comparison(shown: Mapping[str, Sequence[Course]]) -> Figure:
    """Highest load and cov over time, and all moves, of several schemes; over seeds the median, and its spread."""
    highest = max((moment.highest for runs in shown.values() for run in runs for moment in run.moments), default=1.0)
    size, name = unit(highest)
    figure, axes = panels(3, wide=3.3, high=2.9)
    over_time(axes[0], "(1) highest load", shown, lambda moment: moment.highest / size, Axis(name, top=highest / size))
    over_time(axes[1], "(2) cov", shown, lambda moment: moment.cov, Axis("σ ÷ μ"))
    axes[1].set_ylim(bottom=0)
    moves(axes[2], "(3) moves", shown)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8))
    return figure


def over_time(
    axes: Axes, title: str, shown: Mapping[str, Sequence[Course]], figure: Callable[[Moment], float], y: Axis
) -> None:
    """A figure of every scheme over time, and between what it is with one seed or another."""
    found = {name: _moments(runs, figure) for name, runs in shown.items()}
    middle = {name: (xs, [one.median for one in spreads]) for name, (xs, spreads) in found.items()}
    lines(axes, title, middle, _MINUTES, y)
    if any(len(runs) > 1 for runs in shown.values()):
        around = {
            name: (xs, [one.lowest for one in spreads], [one.highest for one in spreads])
            for name, (xs, spreads) in found.items()
        }
        bands(axes, around)


def moves(axes: Axes, title: str, shown: Mapping[str, Sequence[Course]]) -> None:
    """All moves of every scheme."""
    found = {name: Spread.of([run.total_moves for run in runs]) for name, runs in shown.items()}
    middle = {name: one.median for name, one in found.items()}
    spans = {name: (one.lowest, one.highest) for name, one in found.items() if one.lowest < one.highest}
    bars(axes, title, middle, "subscribers moved", spans=spans)


def table(caption: str, shown: Mapping[str, Sequence[Course]]) -> Grid:
    """The numbers by which runs are compared: over seeds the median, and in brackets the lowest and the highest."""
    header = ["run", "highest load", "mean load", "highest ÷ mean", "cov", "moves"]
    return Grid(caption, header, [[title, *_cells(runs)] for title, runs in shown.items()])


def _cells(runs: Sequence[Course]) -> list[str]:
    return [
        rate(median(run.highest for run in runs)),
        rate(median(run.mean for run in runs)),
        spread([run.over for run in runs]),
        spread([run.cov for run in runs], ".3f"),
        spread([run.total_moves for run in runs], ",.0f"),
    ]


def _moments(runs: Sequence[Course], figure: Callable[[Moment], float]) -> tuple[list[float], list[Spread]]:
    """A figure in minutes, and what it is then with each seed that has that minute."""
    found: dict[float, list[float]] = {}
    for run in runs:
        for moment in run.moments:
            found.setdefault(moment.seconds / 60, []).append(figure(moment))
    times = sorted(found)
    return times, [Spread.of(found[time]) for time in times]


def _brokers(loads: Sequence[LoadRow], size: float) -> dict[str, Points]:
    series: dict[str, tuple[list[float], list[float]]] = {}
    for load in loads:
        xs, ys = series.setdefault(load.broker, ([], []))
        xs.append(load.seconds / 60)
        ys.append(load.load / size)
    return dict(sorted(series.items(), key=lambda item: (len(item[0]), item[0])))
