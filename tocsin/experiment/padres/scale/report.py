"""The report and the claims of ``padres-scale``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tocsin.experiment.figures.lines import Axis, lines
from tocsin.experiment.figures.style import panels
from tocsin.experiment.padres.course import OverlayCourse
from tocsin.experiment.padres.rows import EdgeRow
from tocsin.experiment.study import Drawing, Grid, ReportSection
from tocsin.experiment.verdict import ClaimVerdict, judge, judge_cases, not_measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EDGES: Final = " edges"
_CLUSTERS: Final = " clusters"
_LAST: Final = 500.0
HOPS: Final = 3
"""Beyond so many cluster-hops the paper's deliveries get no quicker."""
NO_GAIN: Final = 0.03
"""A delay that is shorter by less than this part is not."""


def edges_run(number: int) -> str:
    """What a run with so many edges is called."""
    return f"{number}{_EDGES}"


def clusters_run(number: int) -> str:
    """What a run with so many clusters is called."""
    return f"{number}{_CLUSTERS}"


def sections(rows: Sequence[EdgeRow]) -> list[ReportSection]:
    """Delays over edges and over clusters, and all numbers."""
    if not rows:
        return []
    what = "Figures 6g and 8d: how long a delivery takes, by edges of a cluster and by clusters in a chain."
    header = ["run", "delivery", "highest input", "mean input", "subscribers of each edge"]
    runs = list(dict.fromkeys(row.run for row in rows))
    grid = Grid("The end of every run", header, [_cells(run, OverlayCourse.of(rows, run)) for run in runs])
    return [ReportSection("Delays", "", [Drawing("padres-scale", what, lambda: _draw(rows))], [grid])]


def verdicts(rows: Sequence[EdgeRow]) -> list[ClaimVerdict]:
    """All of them."""
    return [edges_scale(rows), clusters_scale(rows), no_gain(rows)]


def edges_scale(rows: Sequence[EdgeRow]) -> ClaimVerdict:
    """More edges, shorter delays."""
    return _shorter("With more edges in a cluster, deliveries take less time (6g)", _delays(rows, _EDGES))


def clusters_scale(rows: Sequence[EdgeRow]) -> ClaimVerdict:
    """More clusters, shorter delays, up to three hops."""
    delays = {number: delay for number, delay in _delays(rows, _CLUSTERS).items() if number <= HOPS + 1}
    return _shorter("With more clusters in a chain, up to 3 cluster-hops, deliveries take less time (8d)", delays)


def no_gain(rows: Sequence[EdgeRow]) -> ClaimVerdict:
    """Beyond that none."""
    claim = "Clusters more than 3 cluster-hops away no longer shorten the delay (8d)"
    delays = _delays(rows, _CLUSTERS)
    further = [delays[number] for number in delays if number > HOPS + 1]
    if HOPS + 1 not in delays or not further:
        return not_measured(claim)
    return judge(claim, _describe(delays), all(delay >= (1 - NO_GAIN) * delays[HOPS + 1] for delay in further))


def _shorter(claim: str, delays: dict[int, float]) -> ClaimVerdict:
    if len(delays) < 2:
        return not_measured(claim)
    ordered = list(delays.values())
    return judge_cases(claim, _describe(delays), [one > other for one, other in pairwise(ordered)])


def _describe(delays: dict[int, float]) -> str:
    return ", ".join(f"{number}: {1000 * delay:,.0f} ms" for number, delay in delays.items())


def _delays(rows: Sequence[EdgeRow], kind: str) -> dict[int, float]:
    """The mean delay at the end, by how many edges or clusters there are."""
    found = {}
    for run in dict.fromkeys(row.run for row in rows):
        if run.endswith(kind):
            course = OverlayCourse.of(rows, run)
            found[int(run.removesuffix(kind))] = course.delivery(course.end - _LAST, course.end)
    return dict(sorted(found.items()))


def _draw(rows: Sequence[EdgeRow]) -> Figure:
    figure, axes = panels(2, wide=4.0, high=2.9)
    for one, kind, title in zip(axes, (_EDGES, _CLUSTERS), ("edges of a cluster", "clusters in a chain"), strict=True):
        delays = _delays(rows, kind)
        points = [float(number) for number in delays], [1000 * delay for delay in delays.values()]
        ticks = {float(number): str(number) for number in delays}
        lines(one, title, {"delivery": points}, Axis(kind.strip(), ticks=ticks), Axis("milliseconds"), marked=True)
        one.set_ylim(bottom=0)
    return figure


def _cells(run: str, course: OverlayCourse) -> list[str]:
    last = course.between(course.end - _LAST, course.end)
    inputs = [row.input for rows in last for row in rows]
    highest = [max(row.input for row in rows) for rows in last]
    return [
        run,
        f"{1000 * course.delivery(course.end - _LAST, course.end):,.0f} ms",
        f"{sum(highest) / len(highest):.2f}",
        f"{sum(inputs) / len(inputs):.2f}",
        ", ".join(str(row.subscribers) for row in last[-1]),
    ]
