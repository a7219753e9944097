"""How far shedding alone can bring the highest load, with a budget of moves or without."""

from __future__ import annotations

from tocsin.balance.refine.refinement import Refinement
from tocsin.balance.refine.state import RefinementState, copy_state

_MARGINS = (1.003, 1.01, 1.03, 1.1, 1.3)  # above the level that shedding leads to, tried in this order
_HALVINGS = 10


def shed_within(work: Refinement, goal: float, budget: int) -> None:
    """Sheds down to ``goal`` if the budget allows and room is found, else as low as both do."""
    start = work.save()
    lowest = max(goal, work.level)
    if _reaches(work, lowest, lowest, budget):
        return
    for margin in _MARGINS:
        ceiling = max(goal, work.level * margin)
        limit = goal if work.level < goal else ceiling
        work.state = copy_state(start)
        if _reaches(work, limit, ceiling, budget):
            _fit(work, limit, budget)
            return
    work.state = start
    _bisect(work, lowest, budget)


def _reaches(work: Refinement, limit: float, ceiling: float, budget: int) -> bool:
    work.shed(limit, ceiling, budget)
    return work.highest <= ceiling


def _fit(work: Refinement, limit: float, budget: int) -> None:
    """Brings those who received too much below the limit, too, unless that costs more than the budget."""
    before = work.save()
    work.fit(limit)
    if len(work.away) > budget:
        work.state = before


def _bisect(work: Refinement, low: float, budget: int) -> None:
    start: RefinementState = work.state
    best, high = start, work.highest
    for _ in range(_HALVINGS):
        limit = (low + high) / 2.0
        work.state = copy_state(start)
        if _reaches(work, limit, limit, budget):
            best, high = work.state, limit
        else:
            low = limit
    work.state = best
