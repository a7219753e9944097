"""Rates only: a workload as arrays under the controller of ``tocsin/balance``, with no messages at all.

For a million subscribers on a hundred brokers. Nobody comes or goes, reports are exact and at once, and a move takes no
time; what is left is what a policy does with loads that change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tocsin.balance.control.controller import Controller
from tocsin.balance.control.observation import Observation
from tocsin.balance.live.workload import LiveWorkload
from tocsin.balance.model.plan import Moves
from tocsin.balance.model.workload import Floats, Int32s, Workload
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.simulate.policy import Policy
from tocsin.simulate.record import RecordedDecision, Sample, SimulationRecord

MINUTE: Final = 60.0


class Fluid:
    """One run: the same arguments give the same record.

    Args:
        workload: who holds what; ``assignment`` is who is where at the start.
        quarter: whether rates go up and down as in the paper: every minute a quarter of them is chosen to rise within
            3 minutes by 1.5 to 2.5 times, and to fall back 4 to 6 minutes later.
        limits: of the coordinator: the interval between two looks, and how many moves begin in a second.
    """

    def __init__(
        self,
        workload: Workload,
        assignment: Int32s,
        seed: int = 0,
        policy: Policy | None = None,
        seconds: float = 30 * MINUTE,
        quarter: bool = True,
        limits: CoordinatorLimits | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self._policy, self._limits, self._progress = policy or Policy(), limits or CoordinatorLimits(), progress
        self._seconds, self._rng = seconds, np.random.default_rng(seed)
        self._live = LiveWorkload.of(workload, assignment)
        self._rates: Floats = workload.rates.astype(np.float64)
        self._changes = self._fluctuation() if quarter else []
        planners = self._policy.planners()
        self._controller = Controller(planners.migration, planners.shuffle, planners.thresholds)
        self._waiting: Moves | None = None
        names = [f"broker{number}" for number in range(workload.brokers)]
        self._record = SimulationRecord("fluid", self._policy.name, seed, names)
        self._moved = 0

    def run(self) -> SimulationRecord:
        """From the beginning to the end."""
        for step in range(int(self._seconds / self._limits.interval)):
            now = step * self._limits.interval
            self._change(now)
            if self._waiting is not None:
                self._carry_on(now)
            elif self._policy.balancing:
                self._look(now)
            self._sample(now)
        return self._record

    def _fluctuation(self) -> list[tuple[float, int, float]]:
        rng, rows = self._rng, []
        for minute in np.arange(0, self._seconds, MINUTE):
            chosen = rng.choice(len(self._rates), len(self._rates) // 4, replace=False)
            up = minute + rng.uniform(0, 3 * MINUTE, len(chosen))
            down = up + rng.uniform(4 * MINUTE, 6 * MINUTE, len(chosen))
            factor = rng.uniform(1.5, 2.5, len(chosen))
            rows += list(zip(up.tolist(), chosen.tolist(), factor.tolist(), strict=True))
            rows += list(zip(down.tolist(), chosen.tolist(), (1 / factor).tolist(), strict=True))
        return sorted(rows, reverse=True)

    def _change(self, now: float) -> None:
        changed: dict[int, None] = {}
        while self._changes and self._changes[-1][0] <= now:
            _, line, factor = self._changes.pop()
            self._rates[line] *= factor
            changed[line] = None
        if changed:
            lines = np.fromiter(changed, np.int64, len(changed))
            self._live.set_rates(lines, np.rint(self._rates[lines]).astype(np.int64))

    def _look(self, now: float) -> None:
        reported = dict.fromkeys(self._live.brokers.tolist(), now)
        decision = self._controller.decide(now, Observation.of(self._live, reported))
        moves = len(decision.moves) if decision.moves is not None else 0
        if decision.moves is not None or decision.refused:
            self._record.decisions.append(RecordedDecision(now, str(decision.stage), moves, decision.reason))
        self._waiting = decision.moves if moves else None

    def _carry_on(self, now: float) -> None:
        """As many moves as may begin in an interval."""
        assert self._waiting is not None
        most = int(self._limits.per_second * self._limits.interval)
        first, rest = _cut(self._waiting, slice(0, most)), _cut(self._waiting, slice(most, None))
        self._live.apply(first)
        self._controller.carried_out(now, first)
        self._moved += len(first)
        self._waiting = rest if len(rest) else None

    def _sample(self, now: float) -> None:
        figures, population = self._live.figures(), self._live.population.tolist()
        incoming, outgoing = figures.incoming.astype(float).tolist(), figures.outgoing.astype(float).tolist()
        idle = [0.0] * len(population)
        self._record.samples.append(
            Sample(now, population, population, incoming, outgoing, incoming, outgoing, idle, self._moved)
        )
        if self._progress:
            self._progress(now)


def _cut(moves: Moves, part: slice) -> Moves:
    return Moves(moves.subscriber[part], moves.source[part], moves.destination[part], moves.reason[part])
