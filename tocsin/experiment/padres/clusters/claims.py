"""Section 6.3 of the paper, claim by claim, judged by the rows of ``padres-global``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from tocsin.experiment.padres.clusters.sections import MAIN
from tocsin.experiment.padres.course import METRICS, OverlayCourse, Value, input_of, output_of, overhead
from tocsin.experiment.padres.rows import EdgeRow, MessageRow
from tocsin.experiment.padres.scenario import GLOBAL
from tocsin.experiment.study import StudyData
from tocsin.experiment.verdict import ClaimVerdict, judge, judge_cases, not_measured

TRIGGER: Final = 0.15
CONVERGED: Final = 4500.0
"""When the paper's clusters are balanced."""
REST: Final = 0.05
"""Metrics that differ by no more than this count as at rest: a cluster may have as much more as the one before it."""
FEW: Final = 0.01
"""Sessions that move less than this part of all subscribers in 1,000 s are no more than what fluctuations bring."""


def verdicts(data: StudyData) -> list[ClaimVerdict]:
    """All of them."""
    course, messages = OverlayCourse.of(data.of(EdgeRow), MAIN), data.of(MessageRow)
    if not course:
        return [not_measured(claim) for claim in (_CONVERGES, _DIMINISHES, _MORE_BALANCED, _EVERYBODY)]
    return [
        converges(course, messages),
        diminishes(course),
        more_balanced(course),
        reaches_everybody(course),
        costs_little(messages),
    ]


_CONVERGES: Final = "Balancing between clusters converges by 4,500 s"
_DIMINISHES: Final = "Clusters further away from B1x have less load (8a)"
_MORE_BALANCED: Final = "After 8,000 s, when publishers publish more, input ratios are more even; outputs a little less"
_EVERYBODY: Final = "All load, which comes at one edge, is spread over all clusters"


def converges(course: OverlayCourse, messages: Sequence[MessageRow]) -> ClaimVerdict:
    """All metrics of neighbouring clusters are within the global threshold, and nobody moves any more."""
    until = GLOBAL.doubled_at
    moments = [at for at in course.moments if at <= until - 30]
    even = {name: _even_from(course, moments, value) for name, value in METRICS.items()}
    subscribers = sum(row.subscribers for row in course.moments[max(course.moments)])
    moved = {start: _count_moves(messages, start, start + 1000.0) for start in range(0, int(until) - 999, 500)}
    busy = [start + 1000.0 for start, number in moved.items() if number > FEW * subscribers]
    times = ", ".join(f"{name} {_from(at)}" for name, at in even.items())
    said = (
        f"the averages of neighbouring clusters are within {TRIGGER} of each other: {times}; less than {FEW:.0%} of "
        f"all subscribers move in 1,000 s from {max([*busy, 0.0]):,.0f} s on"
    )
    held = [at is not None and at <= CONVERGED for at in even.values()]
    return judge_cases(_CONVERGES, said, [*held, not busy or max(busy) <= CONVERGED])


def diminishes(course: OverlayCourse) -> ClaimVerdict:
    """The load along the chain."""
    loads = list(_averages(course, input_of, GLOBAL.doubled_at - 1000.0, GLOBAL.doubled_at).values())
    said = f"input ratios {', '.join(f'{load:.2f}' for load in loads)} along the chain"
    if not loads:
        return not_measured(_DIMINISHES)
    falls = loads[-1] < loads[0] and all(other <= one + REST for one, other in pairwise(loads))
    return judge(_DIMINISHES, said, falls)


def more_balanced(course: OverlayCourse) -> ClaimVerdict:
    """The same before and after publishers publish more, relative to the average."""
    before, after = (GLOBAL.doubled_at - 1000.0, GLOBAL.doubled_at), (GLOBAL.seconds - 1000.0, GLOBAL.seconds)
    if not course.between(*before) or not course.between(*after):
        return not_measured(_MORE_BALANCED)
    inputs = [_spread(course, input_of, *span) for span in (before, after)]
    outputs = [_spread(course, output_of, *span) for span in (before, after)]
    said = (
        f"the largest less the smallest average, over the mean: inputs {inputs[0]:.2f} → {inputs[1]:.2f}, outputs "
        f"{outputs[0]:.2f} → {outputs[1]:.2f}"
    )
    return judge_cases(_MORE_BALANCED, said, [inputs[1] < inputs[0], outputs[1] > outputs[0]])


def reaches_everybody(course: OverlayCourse) -> ClaimVerdict:
    """Everybody began on one edge."""
    last = course.moments[max(course.moments)]
    said = ", ".join(f"{row.broker} {row.subscribers}" for row in last)
    return judge(_EVERYBODY, f"subscribers in the end: {said}", all(row.subscribers for row in last))


def costs_little(messages: Sequence[MessageRow]) -> ClaimVerdict:
    """The overhead of the abstract, here of balancing between clusters."""
    claim = "The overhead is less than 1.5 % (abstract)"
    whole, after = overhead(messages, MAIN, 0.0, GLOBAL.seconds), overhead(messages, MAIN, CONVERGED, GLOBAL.doubled_at)
    return judge(claim, f"{whole:.2%} of all messages over the whole run, {after:.2%} once balanced", whole < 0.015)


def _averages(course: OverlayCourse, value: Value, since: float, until: float) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for rows in course.between(since, until):
        for row in rows:
            found.setdefault(row.cluster, []).append(value(row))
    return {cluster: sum(values) / len(values) for cluster, values in found.items()}


def _even_from(course: OverlayCourse, moments: Sequence[float], value: Value) -> float | None:
    """From when on clusters next to each other differ by no more than the trigger; None, if not in the end."""
    apart = [at for at in moments if _is_uneven(course, value, at)]
    if apart and apart[-1] == moments[-1]:
        return None
    return apart[-1] if apart else 0.0


def _from(at: float | None) -> str:
    return "never" if at is None else f"from {at:,.0f} s on"


def _is_uneven(course: OverlayCourse, value: Value, at: float) -> bool:
    """Whether clusters next to each other differ by more than the trigger, around a moment."""
    loads = list(_averages(course, value, at - 30, at + 30).values())
    return any(abs(one - other) > TRIGGER for one, other in pairwise(loads))


def _spread(course: OverlayCourse, value: Value, since: float, until: float) -> float:
    loads = list(_averages(course, value, since, until).values())
    return (max(loads) - min(loads)) * len(loads) / sum(loads) if sum(loads) else 0.0


def _count_moves(messages: Sequence[MessageRow], since: float, until: float) -> int:
    return sum(row.moved for row in messages if since < row.seconds <= until)
