"""Bars: one number for each of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tocsin.experiment.figures.style import INK, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bars(
    axes: Axes,
    title: str,
    values: Mapping[str, float],
    label: str,
    form: str = "{:,.0f}",
    spans: Mapping[str, tuple[float, float]] | None = None,
) -> None:
    """One bar per name with its number on it; ``spans`` says from where to where it goes, where that is known."""
    colours = [colour(number) for number in range(len(values))]
    drawn = axes.bar(range(len(values)), list(values.values()), color=colours, width=0.7)
    _whiskers(axes, list(values), spans or {})
    axes.bar_label(drawn, [form.format(value) for value in values.values()], fontsize=7, padding=1)
    axes.set_xticks(range(len(values)), list(values), rotation=30, ha="right")
    axes.grid(visible=False, axis="x")
    axes.set_title(title)
    axes.set_ylabel(label)
    axes.margins(y=0.12)


def _whiskers(axes: Axes, names: Sequence[str], spans: Mapping[str, tuple[float, float]]) -> None:
    places = [place for place, name in enumerate(names) if name in spans]
    lows, highs = ([spans[names[place]][end] for place in places] for end in (0, 1))
    axes.vlines(places, lows, highs, color=INK, linewidth=1.0)


def groups(axes: Axes, title: str, values: Mapping[str, Mapping[str, float]], label: str) -> None:
    """A group of bars per name, the bars of a group in the same order everywhere."""
    inner = list(dict.fromkeys(name for group in values.values() for name in group))
    width = 0.8 / max(len(inner), 1)
    for number, name in enumerate(inner):
        places = [at + (number - (len(inner) - 1) / 2) * width for at in range(len(values))]
        heights = [group.get(name, 0.0) for group in values.values()]
        drawn = axes.bar(places, heights, width * 0.95, color=colour(number), label=name)
        axes.bar_label(drawn, [f"{height:,.0f}" for height in heights], fontsize=6, padding=1)
    axes.set_xticks(range(len(values)), list(values))
    axes.grid(visible=False, axis="x")
    axes.set_title(title)
    axes.set_ylabel(label)
    axes.margins(y=0.12)
