"""Lines over time or over sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tocsin.experiment.figures.style import INK, MARKERS, STROKES, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = tuple[Sequence[float], Sequence[float]]
Band = tuple[Sequence[float], Sequence[float], Sequence[float]]
"""Along the first, between the second and the third."""


@dataclass(frozen=True)
class Axis:
    """What an axis says. ``top`` is where it ends, so that panels beside each other compare; 0: by itself."""

    label: str
    log: bool = False
    top: float = 0.0
    ticks: Mapping[float, str] = field(default_factory=dict)


def lines(axes: Axes, title: str, series: Mapping[str, Points], x: Axis, y: Axis, *, marked: bool = False) -> None:
    """One line per series, told apart by colour and by stroke or marker, so in grey too."""
    for number, (name, (xs, ys)) in enumerate(series.items()):
        look: dict[str, Any] = {"color": colour(number), "label": name}
        if marked:
            look["marker"] = MARKERS[number % len(MARKERS)]
        else:
            look["linestyle"] = STROKES[number // 2 % len(STROKES)]
        axes.plot(xs, ys, **look)
    axes.set_title(title)
    _label(axes, x, y)


def bands(axes: Axes, series: Mapping[str, Band]) -> None:
    """Around the lines of the same names, drawn in the same order, from where to where they go."""
    for number, (xs, lows, highs) in enumerate(series.values()):
        axes.fill_between(xs, lows, highs, color=colour(number), alpha=0.18, linewidth=0)


def level(axes: Axes, at: float, text: str) -> None:
    """A level to compare with, across the panel."""
    axes.axhline(at, color=INK, linewidth=0.9, linestyle=(0, (1, 2)))
    axes.annotate(text, (1.0, at), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=7)


def _label(axes: Axes, x: Axis, y: Axis) -> None:
    axes.set_xlabel(x.label)
    axes.set_ylabel(y.label)
    if x.log:
        axes.set_xscale("log")
    if y.log:
        axes.set_yscale("log")
    elif y.top:
        axes.set_ylim(0, y.top * 1.05)
    if x.ticks:
        axes.set_xticks(list(x.ticks), list(x.ticks.values()))
        axes.xaxis.minorticks_off()
