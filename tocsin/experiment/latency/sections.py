"""The report of ``latency``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tocsin.experiment.figures.lines import Axis, Points, level, lines
from tocsin.experiment.figures.style import panels
from tocsin.experiment.latency.rows import Delay
from tocsin.experiment.study import Drawing, Grid, ReportSection

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sections(rows: Sequence[Delay]) -> list[ReportSection]:
    """Delays over utilisation, and all numbers."""
    if not rows:
        return []
    what = (
        "Median and 99th percentile of the delay, and the load of the hottest broker over its capacity, by how much "
        "the mean broker has to do. The paper has no such figure."
    )
    header = ["scheme", "mean utilisation", "hottest broker", "p50", "p99", "moves"]
    return [
        ReportSection("Delays", "", [Drawing("latency", what, lambda: _draw(rows))]),
        ReportSection("All numbers", "", grids=[Grid("Every run", header, [_cells(row) for row in rows])]),
    ]


def _draw(rows: Sequence[Delay]) -> Figure:
    figure, axes = panels(3, wide=3.3, high=2.9)
    x = Axis("mean utilisation, %")
    lines(axes[0], "(1) median", _series(rows, lambda row: row.p50), x, Axis("seconds", log=True), marked=True)
    lines(axes[1], "(2) 99th percentile", _series(rows, lambda row: row.p99), x, Axis("seconds", log=True), marked=True)
    lines(
        axes[2], "(3) hottest broker", _series(rows, lambda row: row.hottest), x, Axis("load ÷ capacity"), marked=True
    )
    axes[2].set_ylim(bottom=0)
    level(axes[2], 1.0, "capacity")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def _series(rows: Sequence[Delay], value: Callable[[Delay], float]) -> dict[str, Points]:
    names = dict.fromkeys(row.scheme for row in rows)
    own = {name: sorted((row for row in rows if row.scheme == name), key=lambda row: row.utilisation) for name in names}
    return {name: ([100 * row.utilisation for row in some], [value(row) for row in some]) for name, some in own.items()}


def _cells(row: Delay) -> list[str]:
    return [
        row.scheme,
        f"{row.utilisation:.0%}",
        f"{row.hottest:.0%}",
        f"{row.p50:,.1f} s",
        f"{row.p99:,.1f} s",
        f"{row.moved:,}",
    ]
