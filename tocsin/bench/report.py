"""Figures, and how they are shown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

import msgspec
from rich.console import Console
from rich.table import Table


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One measured figure. ``target`` says in words what it should be, ``met`` whether it is.

    ``baseline`` names what ``ratio`` compares it with, measured in the same run.
    """

    group: str
    name: str
    value: float
    unit: str
    ratio: float | None = None
    baseline: str = ""
    target: str = ""
    met: bool | None = None


def median(values: Sequence[float]) -> float:
    """The middle value, which one slow turn of a shared machine does not move."""
    return statistics.median(values)


def quantile(values: Sequence[float], q: float) -> float:
    """The value below which a part ``q`` of the values lies."""
    ordered = sorted(values)
    return ordered[min(int(q * len(ordered)), len(ordered) - 1)]


def show(figures: Iterable[Figure], console: Console, title: str) -> None:
    """Prints figures as a table, a section per group."""
    table = Table(title=title, title_justify="left")
    for column in ("", "figure", "measured", "ratio", "to", "target", "met"):
        table.add_column(column, justify="right" if column in {"measured", "ratio"} else "left")
    last = ""
    for figure in figures:
        if last and figure.group != last:
            table.add_section()
        table.add_row(
            figure.group if figure.group != last else "",
            figure.name,
            f"{_number(figure.value)} {figure.unit}",
            f"{_number(figure.ratio)}×" if figure.ratio is not None else "",
            figure.baseline,
            figure.target,
            {True: "[green]yes[/]", False: "[red]no[/]", None: ""}[figure.met],
        )
        last = figure.group
    console.print(table)


def _number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
