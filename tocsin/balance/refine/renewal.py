"""Placing everybody anew, from the peeled groups to the polished and relabelled assignment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tocsin.balance.model.workload import Bools, Int32s, Int64s
from tocsin.balance.refine.freedom import everywhere
from tocsin.balance.refine.peeling import is_crowded, peel_groups
from tocsin.balance.refine.potential import Pressure
from tocsin.balance.refine.refinement import Refinement
from tocsin.balance.refine.relabel import relabel


@dataclass(frozen=True)
class Renewal:
    """How everybody is placed anew.

    Args:
        passes: of best responses, while p grows
        sharpness: from this to 1,
        blunt: or from this, where many hold the same on every broker and only a faint pull tells brokers apart.
        kappa: how strongly load presses meanwhile.
        even: how strongly it presses in each of the further passes that even the brokers out.
        attempts: on small instances the best of several attempts is taken, at most this many,
        work: and no more than this allows, in passes × FE subscriptions × brokers.
        steps: at most so many moves and swaps cool the hottest brokers, in multiples of the number of brokers.
    """

    passes: int = 10
    sharpness: float = 0.4
    blunt: float = 0.1
    kappa: float = 2.0
    even: tuple[float, ...] = (8.0, 30.0, 120.0)
    attempts: int = 8
    work: float = 2e6
    steps: int = 60

    def apply(self, work: Refinement) -> None:
        """Leaves the best of the attempts, or where it stood if none is better. Nobody may be waiting."""
        placed = work.state
        best, lowest = placed, work.highest
        size = max(1, self.passes * len(work.rows.idx) * len(work.state.load))
        for attempt in range(int(min(self.attempts, max(1, self.work // size)))):
            work.restart(_first(work, placed.assignment))
            self._refine(work, attempt)
            if work.highest < lowest:
                best, lowest = work.state, work.highest
        work.state = best
        if everywhere(work.freedom):
            work.restart(_relabel_home(work))

    def _refine(self, work: Refinement, attempt: int) -> None:
        seed = work.problem.seed + attempt
        order = _order(work, attempt)
        first = self.blunt if is_crowded(work.rows, len(work.state.load)) else self.sharpness
        sharpness = np.geomspace(first, 1.0, self.passes)
        work.respond(sharpness, Pressure(self.kappa / max(work.level, 1.0), 0.0, 0.0), order)
        for kappa in self.even:
            work.respond([1.0], Pressure(kappa / max(work.level, 1.0), 0.0, 0.0), order)
        work.cool(self.steps * len(work.state.load), work.level, seed)


def _order(work: Refinement, attempt: int) -> Int64s:
    """Who responds when: as stored, which is fastest, but for further attempts at random."""
    free = work.freedom.free
    return np.random.default_rng(work.problem.seed + attempt).permutation(free) if attempt else free


def _first(work: Refinement, placed: Int32s) -> Int32s:
    """Where best responses begin: what is peeled, or where everybody is if not everybody may go everywhere."""
    if not everywhere(work.freedom):
        return placed
    open_ = np.flatnonzero(work.freedom.open[0])
    groups = peel_groups(work.rows, work.freedom.free, 1.0 / work.state.weight[open_])
    assignment = placed.copy()
    assignment[work.freedom.free] = open_[groups]
    return assignment


def _relabel_home(work: Refinement) -> Int32s:
    free, home = work.freedom.free, work.freedom.home
    assignment = work.state.assignment.copy()
    assignment[free] = relabel(assignment[free], home[free], _interchangeable(work), work.state.weight)
    return assignment


def _interchangeable(work: Refinement) -> Bools:
    """Brokers that may receive and where nobody has to stay, so that their groups can be exchanged as a whole."""
    stays = np.ones(len(work.freedom.home), np.bool_)
    stays[work.freedom.free] = False
    mask = work.freedom.open[0] > 0.0
    mask[work.freedom.home[stays]] = False
    return np.asarray(mask)
