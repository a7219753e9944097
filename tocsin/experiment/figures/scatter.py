"""Points: what one number is when another is so much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tocsin.experiment.figures.lines import Axis, Points
from tocsin.experiment.figures.style import INK, MARKERS, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def agreement(axes: Axes, title: str, series: Mapping[str, Points], x: Axis, y: Axis) -> None:
    """Points of two numbers that would be the same, on the diagonal, if one told the other."""
    top = max((value for xs, ys in series.values() for value in (*xs, *ys)), default=1.0)
    axes.plot([0, top], [0, top], color=INK, linewidth=0.9, linestyle=(0, (1, 2)))
    for number, (name, (xs, ys)) in enumerate(series.items()):
        marker = MARKERS[number % len(MARKERS)]
        axes.scatter(xs, ys, s=14, color=colour(number), marker=marker, label=name, linewidths=0)
    axes.set_title(title)
    axes.set_xlabel(x.label)
    axes.set_ylabel(y.label)
