"""The report of ``slices``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tocsin.experiment.figures.bars import groups
from tocsin.experiment.figures.lines import Axis, Points, level, lines
from tocsin.experiment.figures.style import panels
from tocsin.experiment.slices.rows import Evenness, Growth, Takeover, Throughput
from tocsin.experiment.study import Drawing, Grid, ReportSection

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sections(
    even: Sequence[Evenness], taken: Sequence[Takeover], grown: Sequence[Growth], worked: Sequence[Throughput]
) -> list[ReportSection]:
    """How even, how long a pause, how nodes come and go, and what real ones take."""
    parts = []
    if even:
        parts.append(_evenness(even))
    if taken:
        parts.append(_takeovers(taken))
    if grown:
        what = "What comes, how many nodes there are, the busiest one over what it can process, and what waits."
        parts.append(ReportSection("Elasticity", "", [Drawing("slices-growth", what, lambda: _growth(grown))]))
    if worked:
        parts.append(_throughput(worked))
    return parts


def _evenness(rows: Sequence[Evenness]) -> ReportSection:
    what = "The highest load of a node in per cent of the mean, before slices moved and at the end, and the bound."
    header = ["nodes", "slices", "planner", "cov", "highest ÷ mean", "bound", "moves", "pause p50", "p99", "batch"]
    cells = [
        [
            f"{row.nodes:,}",
            f"{row.slices:,}",
            row.planner,
            f"{row.cov_before:.3f} → {row.cov_after:.3f}",
            f"{row.highest_before:.2f} → {row.highest_after:.2f}",
            f"{row.bound:.2f}",
            f"{row.moves:,}",
            f"{row.pause_p50:.2f} s",
            f"{row.pause_p99:.2f} s",
            f"{row.batch:.2f} s",
        ]
        for row in rows
    ]
    drawing = Drawing("slices-evenness", what, lambda: _highest(rows))
    return ReportSection("Coarse and fine slices", "", [drawing], [Grid("Every run", header, cells)])


def _takeovers(rows: Sequence[Takeover]) -> ReportSection:
    cells = [[f"{row.nodes:,}", f"{row.slices:,}", f"{row.first:.1f} s", f"{row.last:.1f} s"] for row in rows]
    grid = Grid("A node is killed", ["nodes", "its slices", "first read again", "last read again"], cells)
    return ReportSection("Takeover", "", grids=[grid])


def _throughput(rows: Sequence[Throughput]) -> ReportSection:
    cores = rows[0].cores
    text = (
        f"Processes of their own, each with its Spark, on the {cores} core{'s' if cores > 1 else ''} of this machine, "
        "which they share with the data cluster and who publishes. More workers than cores cannot take more: these "
        "figures show what sharing costs where there is nothing to be gained, and not what more machines take."
    )
    cells = [[f"{row.workers or 'none'}", f"{row.rate:,.0f}", f"{row.ratio:.2f}"] for row in rows]
    header = ["workers", "records of 500 B a second", "to the data cluster by itself"]
    return ReportSection("Real workers", text, grids=[Grid("From HTTP into the dataset", header, cells)])


def _highest(rows: Sequence[Evenness]) -> Figure:
    figure, (axes,) = panels(1, wide=7.0, high=3.2)
    values = {
        f"{row.nodes:,} × {row.slices:,}\n{row.planner}": {
            "before": 100 * row.highest_before,
            "after": 100 * row.highest_after,
            "bound": 100 * row.bound,
        }
        for row in rows
    }
    groups(axes, "nodes × slices", values, "highest load, % of the mean")
    axes.legend()
    return figure


def _growth(rows: Sequence[Growth]) -> Figure:
    figure, axes = panels(3, wide=3.3, high=2.9)
    seconds, x = [row.second for row in rows], Axis("seconds")
    counts: dict[str, Points] = {
        "nodes": (seconds, [float(row.nodes) for row in rows]),
        "load": (seconds, [4 * row.factor for row in rows]),
    }
    lines(axes[0], "(1) nodes, and four times the load", counts, x, Axis("", top=10))
    axes[0].legend()
    lines(axes[1], "(2) busiest node", {"busiest": (seconds, [row.busiest for row in rows])}, x, Axis("load ÷ speed"))
    axes[1].set_ylim(bottom=0)
    level(axes[1], 1.0, "all it can do")
    lines(axes[2], "(3) what waits", {"behind": (seconds, [row.behind for row in rows])}, x, Axis("seconds behind"))
    axes[2].set_ylim(bottom=0)
    return figure
