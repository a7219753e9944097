"""A simulated run of nodes on a flow of records, measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tocsin.simulate.clock import START
from tocsin.simulate.network import Conditions
from tocsin.simulate.slices.flow import FlowingLog, publishers
from tocsin.simulate.slices.hosts import NodePower
from tocsin.simulate.slices.system import SliceSystem
from tocsin.slices.balancing import SlicePlanners
from tocsin.slices.elasticity import Elasticity
from tocsin.slices.limits import SliceLimits

OVERHEAD: Final = 0.02
"""Seconds that a batch takes, however small it is."""
MOST_SECONDS: Final = 0.5
"""What a batch takes at most, when a node is behind."""
LIMITS: Final = SliceLimits(batch_seconds=0.25)
UTILISATION: Final = 0.6
_LAN: Final = Conditions(latency=0.001, spread=0.3, notice=3.0)


@dataclass(frozen=True)
class SliceRun:
    """What is run.

    Args:
        utilisation: what comes, over what all nodes together can process.
        exponent: of the Zipf law of what publishers send.
        phases: when the load changes by which factor.
    """

    nodes: int
    slices: int
    publishers: int = 100_000
    planner: str = "migrate"
    seconds: float = 60.0
    exponent: float = 0.8
    utilisation: float = UTILISATION
    phases: Sequence[tuple[float, float]] = ((3.2, 1.0),)
    seed: int = 1


@dataclass
class ReadTimes:
    """When slices were read, by whom, and how long they were not when their owner changed."""

    now: Callable[[], float]
    last: dict[int, tuple[str, float]] = field(default_factory=dict)
    pauses: list[tuple[str, float]] = field(default_factory=list)
    """From whom, and for how long."""
    batches: list[float] = field(default_factory=list)

    def note(self, node: str, slices: Iterable[int]) -> None:
        """A node reads some slices."""
        now = self.now()
        for number, slice_ in enumerate(slices):
            before = self.last.get(slice_)
            if before and before[0] != node:
                self.pauses.append((before[0], now - before[1]))
            elif before and number == 0:
                self.batches.append(now - before[1])
            self.last[slice_] = node, now


class RunningNodes:
    """The system of a run, and what is measured of it."""

    def __init__(self, run: SliceRun, elasticity: Callable[[], Elasticity | None] = lambda: None) -> None:
        self.run, self._names = run, 0
        rates = publishers(run.publishers, run.slices, run.exponent, 1.0, run.seed)
        self.log = FlowingLog(rates, run.phases)
        speed = float(rates.sum()) / run.nodes / run.utilisation
        self.power = NodePower(speed, OVERHEAD, int(speed * MOST_SECONDS))
        planners = lambda: SlicePlanners.by_name(run.planner)  # noqa: E731
        self.system = SliceSystem(self.log, run.seed, LIMITS, planners, _LAN, elasticity=elasticity)
        self.reads = ReadTimes(lambda: self.system.clock.now)
        self.system.read = self.reads.note
        self.system.start_head()
        for _ in range(run.nodes):
            self.start_node()

    @property
    def second(self) -> float:
        """Since the beginning."""
        return self.system.clock.now - START

    @property
    def moves(self) -> int:
        """How many slices have moved."""
        return self.system.head.core.sessions.moves

    def start_node(self) -> None:
        """One more node."""
        self._names += 1
        self.system.start_node(f"node-{self._names}", self.power)

    def loads(self) -> dict[str, float]:
        """What comes for each node that is there, in records per second."""
        factor = self.log.factor(self.system.clock.now)
        loads = {name: 0.0 for name, host in self.system.nodes.items() if host.alive}
        for owned in self.system.head.core.ownership.slices:
            if owned.owner in loads:
                loads[owned.owner] += float(self.log.rates[owned.number]) * factor
        return loads

    def figures(self) -> tuple[float, float]:
        """cov, and the highest load over the mean."""
        loads = np.array(list(self.loads().values()))
        mean = float(loads.mean()) or 1.0
        return float(loads.std()) / mean, float(loads.max()) / mean

    def behind(self) -> float:
        """What waits in the log, in seconds of what comes."""
        now = self.system.clock.now
        markers = self.system.dataset.markers
        waiting = sum(self.log.end(slice_, now) - marker for slice_, marker in enumerate(markers))
        return waiting / float(self.log.rates.sum()) / self.log.factor(now)

    def missing(self, seconds: float = 10.0) -> int:
        """Records that came before the last seconds, and are not in the dataset."""
        before = self.system.clock.now - seconds
        markers = self.system.dataset.markers
        return sum(max(self.log.end(slice_, before) - marker, 0) for slice_, marker in enumerate(markers))
