"""The report of ``simulation``, in the order of the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from tocsin.balance.model.units import rate
from tocsin.experiment.figures.bars import bars
from tocsin.experiment.figures.lines import Axis
from tocsin.experiment.figures.style import panels
from tocsin.experiment.series.course import Course
from tocsin.experiment.series.figures import comparison, distribution, moves, over_time, table
from tocsin.experiment.simulation.claims import ALPHA, GSH, LDM, NONE, OURS
from tocsin.experiment.study import Drawing, ReportSection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs = Mapping[str, Sequence[Course]]
"""The runs of each scheme, one for each seed."""


def sections(runs: Runs, alphas: Sequence[str], betas: Sequence[str], beta: float) -> list[ReportSection]:
    """``beta`` is the β of the paper's schemes here, bytes per second."""
    swept = set(alphas) | set(betas)
    main = {name: course for name, course in runs.items() if name not in swept or name == LDM}
    parts = [_main(main, beta)] if main else []
    parts += [
        part
        for part in (
            _sweep("α", runs, alphas, "β as above, α from small to large; GSH beside it."),
            _sweep(
                "β",
                runs,
                betas,
                f"α = {ALPHA:g}, β from none to above the mean load, where nothing is moved; GSH too.",
            ),
        )
        if part
    ]
    caption = (
        "Means from the middle of the run to its end, and all moves of the run; of several seeds the median, and the "
        "lowest and the highest"
    )
    return [*parts, ReportSection("All runs", "", grids=[table(caption, runs)])] if runs else []


def _main(runs: Runs, beta: float) -> ReportSection:
    shown = {name: runs[name][0] for name in (NONE, LDM, GSH, OURS) if name in runs}
    what = "Highest load, cov and moves compared: the median of all seeds, and around it what they differ by."
    drawings = [Drawing("simulation-compared", what, lambda: comparison(runs))]
    if shown:
        what = "Figure 13 of the paper, and ours. Load of each broker over time, nearest-broker placement, one seed."
        drawings.insert(0, Drawing("simulation-loads", what, lambda: distribution(shown)))
    if NONE in runs:
        what = "Figure 13 (1) of the paper. Subscribers of each broker, nearest-broker placement."
        drawings.insert(0, Drawing("simulation-population", what, lambda: _population(runs[NONE][0])))
    return ReportSection("LDM, GSH and ours", _ratio(runs, beta), drawings)


def _ratio(runs: Runs, beta: float) -> str:
    if NONE not in runs:
        return ""
    mean = median(run.mean for run in runs[NONE])
    return (
        f"The paper's β of 300 MB/s belongs to rates that it does not name. Here the mean load is {rate(mean)} once "
        f"everybody has subscribed, and LDM acts above β = {rate(beta)}, which is {beta / mean:.2f} times that."
    )


def _population(course: Course) -> Figure:
    numbers = course.populations(float("inf"))
    ordered = dict(sorted(numbers.items(), key=lambda item: (len(item[0]), item[0])))
    figure, axes = panels(1, wide=6.6, high=2.4)
    bars(axes[0], "", ordered, "subscribers")
    return figure


def _sweep(symbol: str, runs: Runs, names: Sequence[str], text: str) -> ReportSection | None:
    shown = {name: runs[name] for name in [*names, GSH] if name in runs}
    if len(shown) < 2:
        return None
    what = f"Figure 14 of the paper: the effect of {symbol}. {text}"
    name = "alpha" if symbol == "α" else "beta"
    return ReportSection(
        f"The threshold {symbol}", "", [Drawing(f"simulation-{name}", what, lambda: _draw_sweep(shown))]
    )


def _draw_sweep(shown: Runs) -> Figure:
    figure, axes = panels(2, wide=4.6, high=3.0)
    over_time(axes[0], "(1) cov", shown, lambda moment: moment.cov, Axis("σ ÷ μ"))
    axes[0].set_ylim(bottom=0)
    moves(axes[1], "(2) moves", shown)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=min(len(shown), 6))
    return figure
