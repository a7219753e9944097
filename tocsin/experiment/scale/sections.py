"""The report of ``scale``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tocsin.balance.model.units import rate
from tocsin.experiment.figures.lines import Axis, Points, lines
from tocsin.experiment.figures.style import panels
from tocsin.experiment.scale.rows import PlanRow
from tocsin.experiment.study import Drawing, Grid, ReportSection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = Callable[[PlanRow], float]


def sections(rows: Sequence[PlanRow]) -> list[ReportSection]:
    """Quality and cost, over subscribers and over brokers, and all numbers."""
    if not rows:
        return []
    return [
        ReportSection(
            "How low the highest load gets",
            "The highest load of a broker over the lower bound; 1 would be perfect. LDM and SDM "
            "stop at cov ≤ 0.05, which still allows single brokers above the mean.",
            [Drawing("scale-quality", _caption("Highest load ÷ lower bound", rows), lambda: _quality(rows))],
        ),
        ReportSection(
            "What it costs",
            "“migrate to gsh” is migrate asked to go as low as GSH and no further. Seconds are those of one plan on "
            "one core; memory is the peak of the whole process, with the instance in it.",
            [Drawing("scale-cost", _caption("Moves, seconds and memory", rows), lambda: _cost(rows))],
        ),
        ReportSection("All numbers", "", grids=[_grid(rows)]),
    ]


def _caption(what: str, rows: Sequence[PlanRow]) -> str:
    by_size, by_brokers = _sweeps(rows)
    return (
        f"{what}, over the number of subscribers ({by_size[0].brokers} brokers) and over the number of brokers "
        f"({by_brokers[0].subscribers:,} subscribers). The paper has no such figure."
    )


def _sweeps(rows: Sequence[PlanRow]) -> tuple[list[PlanRow], list[PlanRow]]:
    """The rows of the number of brokers that most sizes have, and of the number of subscribers likewise."""
    brokers = _most([(row.brokers, row.subscribers) for row in rows])
    subscribers = _most([(row.subscribers, row.brokers) for row in rows])
    return [row for row in rows if row.brokers == brokers], [row for row in rows if row.subscribers == subscribers]


def _most(pairs: Sequence[tuple[int, int]]) -> int:
    distinct = [first for first, _ in dict.fromkeys(pairs)]
    return max(distinct, key=distinct.count)


def _quality(rows: Sequence[PlanRow]) -> Figure:
    by_size, by_brokers = _sweeps(rows)
    figure, axes = panels(2, wide=4.4, high=3.0)
    y = Axis("highest load ÷ lower bound")
    plain = [row for row in by_size if " " not in row.planner]
    lines(axes[0], "more subscribers", _series(plain, _subscribers, _ratio), _sizes(by_size), y, marked=True)
    plain = [row for row in by_brokers if " " not in row.planner]
    lines(axes[1], "more brokers", _series(plain, _brokers, _ratio), _numbers(by_brokers), y, marked=True)
    for one in axes:
        one.set_ylim(bottom=1.0)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def _cost(rows: Sequence[PlanRow]) -> Figure:
    by_size, by_brokers = _sweeps(rows)
    figure, axes = panels(4, wide=4.4, high=2.6, rows=2)
    size, number = _sizes(by_size), _numbers(by_brokers)
    moved = Axis("part of all subscribers")
    lines(axes[0], "moved", _series(by_size, _subscribers, _part), size, moved, marked=True)
    lines(axes[1], "moved", _series(by_brokers, _brokers, _part), number, moved, marked=True)
    lines(axes[2], "planning", _series(by_size, _subscribers, _seconds), size, Axis("seconds", log=True), marked=True)
    lines(axes[3], "memory", _series(by_size, _subscribers, _mebibytes), size, Axis("MiB"), marked=True)
    axes[3].set_ylim(bottom=0)
    for one in axes[:2]:
        one.set_ylim(0, 1.02)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def _series(rows: Sequence[PlanRow], x: Value, y: Value) -> dict[str, Points]:
    series: dict[str, tuple[list[float], list[float]]] = {}
    for row in sorted(rows, key=x):
        xs, ys = series.setdefault(row.planner, ([], []))
        xs.append(x(row))
        ys.append(y(row))
    order = list(dict.fromkeys(row.planner for row in rows))
    return {name: series[name] for name in order}


def _sizes(rows: Sequence[PlanRow]) -> Axis:
    numbers = sorted({row.subscribers for row in rows})
    return Axis("subscribers", log=True, ticks={number: _short(number) for number in numbers})


def _numbers(rows: Sequence[PlanRow]) -> Axis:
    numbers = sorted({row.brokers for row in rows})
    return Axis("brokers", log=True, ticks={number: str(number) for number in numbers})


def _short(number: int) -> str:
    return (
        f"{number // 1_000_000} M" if number >= 1_000_000 else f"{number // 1000} k" if number >= 1000 else str(number)
    )


def _subscribers(row: PlanRow) -> float:
    return row.subscribers


def _brokers(row: PlanRow) -> float:
    return row.brokers


def _ratio(row: PlanRow) -> float:
    return row.ratio


def _part(row: PlanRow) -> float:
    return row.moved / row.subscribers


def _seconds(row: PlanRow) -> float:
    return row.seconds


def _mebibytes(row: PlanRow) -> float:
    return row.mebibytes


def _grid(rows: Sequence[PlanRow]) -> Grid:
    header = ["instance", "planner", "highest before", "after", "÷ bound", "cov", "moved", "÷ least", "seconds", "MiB"]
    return Grid("Every plan", header, [_cells(row) for row in rows])


def _cells(row: PlanRow) -> list[str]:
    return [
        f"{row.brokers} × {_short(row.subscribers)}",
        row.planner,
        rate(row.before),
        rate(row.after),
        f"{row.ratio:.3f}",
        f"{row.cov_after:.3f}",
        f"{row.moved:,}",
        f"{row.moved / row.least:.2f}" if row.least else "",
        f"{row.seconds:.3g}",
        f"{row.mebibytes:,.0f}",
    ]
