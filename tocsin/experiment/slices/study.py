"""The experiment ``slices``: processing nodes in the simulator, from ten to a thousand, with 100,000 publishers.

On request also one, two and three of them as they are, on this machine.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from tocsin.experiment.slices.claims import verdicts
from tocsin.experiment.slices.rows import Evenness, Growth, Takeover, Throughput
from tocsin.experiment.slices.run import RunningNodes, SliceRun
from tocsin.experiment.slices.sections import sections
from tocsin.experiment.study import ReportSection, StudyData, Tell
from tocsin.experiment.table import Row
from tocsin.experiment.verdict import ClaimVerdict
from tocsin.slices.elasticity import Elasticity

PUBLISHERS: Final = 100_000
_LAST: Final = 10
_RUNS: Final = {
    "10 nodes, 10 slices": SliceRun(10, 10),
    "10 nodes, 100 slices": SliceRun(10, 100),
    "10 nodes, 1,000 slices": SliceRun(10, 1_000),
    "100 nodes, 1,000 slices": SliceRun(100, 1_000, exponent=0.6),
    "1,000 nodes, 10,000 slices": SliceRun(1_000, 10_000, exponent=0.4, seconds=40.0),
}
_SMALL: Final = {
    "4 nodes, 8 slices": SliceRun(4, 8, 2_000, seconds=40.0),
    "4 nodes, 40 slices": SliceRun(4, 40, 2_000, seconds=40.0),
}
_KILLED: Final = SliceRun(10, 100)
_GROWN: Final = SliceRun(4, 64, seconds=360.0, utilisation=0.55, phases=((3.2, 1.0), (60.0, 2.0), (210.0, 1.0)))
_TAKEOVER, _GROWTH, _REAL = "a node is killed", "the load doubles and halves", "real workers"
_REAL_SECONDS, _REAL_STEPS = 20.0, 8


@dataclass(frozen=True)
class SharedSlices:
    """Nodes that share slices.

    Args:
        real: also measures processes on this machine, which needs Spark.
    """

    seed: int = 1
    quick: bool = False
    real: bool = False

    name = "slices"
    title = "Processing nodes that share slices"
    _simulated = (
        "The cores of head and processing nodes in the simulator: 100,000 publishers, whose rates follow a Zipf "
        "law, are assigned to slices by the hash of their names. Every quarter of a second a node reads what there "
        "is, takes 0.02 s and what the records take to process it, and has the head commit it; all nodes together "
        "have 60 % of what they can process. Slices are first given out by their number, as nobody knows yet what "
        "comes for them; then they move while records come. The law's exponent is 0.8, with 100 nodes 0.6 and with "
        "1,000 0.4, so that the busiest publisher has a quarter to a half of what a node has: what one slice has "
        "cannot be divided.\n\n"
        "The chapter on Data Processing Slice Load Balancing argues for fine slices by balls into bins, and for "
        "elasticity; it has no figures. "
    )
    tables = (Evenness, Takeover, Growth, Throughput)

    @property
    def about(self) -> str:
        """What is simulated, and what is not."""
        if self.real:
            return self._simulated + "Only what real workers take was measured on a machine, the one named below."
        return self._simulated + "Nothing here is measured on real machines."

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the numbers depend on."""
        return {
            "seed": self.seed,
            "quick": self.quick,
            "runs": list(self._runs),
            "publishers": 2_000 if self.quick else PUBLISHERS,
            **({"real": True} if self.real else {}),
        }

    @property
    def smaller(self) -> str:
        """What a quick run has less of."""
        return "4 nodes and 2,000 of 100,000 publishers" if self.quick else ""

    def cells(self) -> list[str]:
        """Each run."""
        return [*self._runs, _TAKEOVER, _GROWTH, *([_REAL] if self.real else [])]

    def measure(self, cell: str, tell: Tell) -> Iterator[Row]:
        """One run."""
        if cell == _GROWTH:
            yield from self._grow(tell)
        elif cell == _REAL:
            yield from self._work(tell)
        elif cell == _TAKEOVER:
            yield self._kill(tell)
        else:
            yield self._even(replace(self._runs[cell], seed=self.seed), tell)

    def sections(self, data: StudyData) -> list[ReportSection]:
        """The report's parts."""
        return sections(data.of(Evenness), data.of(Takeover), data.of(Growth), data.of(Throughput))

    def verdicts(self, data: StudyData) -> list[ClaimVerdict]:
        """The claims."""
        return verdicts(data.of(Evenness), data.of(Takeover), data.of(Growth))

    @cached_property
    def _runs(self) -> Mapping[str, SliceRun]:
        return _SMALL if self.quick else _RUNS

    def _even(self, run: SliceRun, tell: Tell) -> Evenness:
        """Until slices have been given out and moved, and a while longer."""
        nodes = RunningNodes(run)
        before, after = (0.0, 0.0), []
        while nodes.second < run.seconds:
            nodes.system.advance(1.0)
            tell("virtual time", nodes.second / run.seconds)
            if not nodes.moves:
                before = nodes.figures()
            if nodes.second > run.seconds - _LAST:
                after.append(nodes.figures())
        cov_after, highest_after = np.mean(after, axis=0).tolist()
        pauses = [seconds for _, seconds in nodes.reads.pauses] or [0.0]
        mean = float(nodes.log.rates.sum()) / run.nodes
        return Evenness(
            nodes=run.nodes,
            slices=run.slices,
            publishers=run.publishers,
            planner=run.planner,
            cov_before=before[0],
            highest_before=before[1],
            cov_after=cov_after,
            highest_after=highest_after,
            bound=max(float(nodes.log.rates.max()) / mean, 1.0),
            moves=nodes.moves,
            pause_p50=float(np.quantile(pauses, 0.5)),
            pause_p99=float(np.quantile(pauses, 0.99)),
            pause_max=max(pauses),
            batch=float(np.median(nodes.reads.batches)),
            processed=sum(nodes.system.dataset.markers),
            missing=nodes.missing(),
        )

    def _kill(self, tell: Tell) -> Takeover:
        """One node dies in the middle."""
        run = replace(_SMALL["4 nodes, 40 slices"] if self.quick else _KILLED, seed=self.seed)
        nodes = RunningNodes(run)
        nodes.system.advance(run.seconds / 2)
        tell("virtual time", 0.5)
        slices = len(nodes.system.head.core.ownership.of("node-1"))
        nodes.reads.pauses.clear()
        nodes.system.crash("node-1")
        nodes.system.advance(run.seconds / 2)
        pauses = [seconds for node, seconds in nodes.reads.pauses if node == "node-1"]
        return Takeover(nodes=run.nodes, slices=slices, first=min(pauses), last=max(pauses))

    def _grow(self, tell: Tell) -> Iterator[Growth]:
        """Whoever runs the nodes starts one when one is wanted, and those who may leave do."""
        run = replace(_GROWN, seed=self.seed, publishers=2_000 if self.quick else PUBLISHERS)
        elasticity = Elasticity(seconds=15.0, least=2)
        nodes = RunningNodes(run, lambda: elasticity)
        started = 0.0
        while nodes.second < run.seconds:
            nodes.system.advance(1.0)
            tell("virtual time", nodes.second / run.seconds)
            if elasticity.wanted and nodes.second - started > 20.0:
                nodes.start_node()
                started = nodes.second
            yield _growth_row(nodes)

    def _work(self, tell: Tell) -> Iterator[Throughput]:
        """A data cluster by itself, and one that leaves all to one, two and three workers."""
        from tocsin.bench.data.workers import throughput

        steps = count()
        with tempfile.TemporaryDirectory(prefix="tocsin-experiment-") as place:
            seconds = _REAL_SECONDS / 10 if self.quick else _REAL_SECONDS
            rates = throughput(Path(place), seconds, lambda doing: tell(doing, next(steps) / _REAL_STEPS))
        for workers, rate in sorted(rates.items()):
            yield Throughput(workers=workers, cores=os.cpu_count() or 1, rate=rate, ratio=rate / rates[0])


def _growth_row(nodes: RunningNodes) -> Growth:
    loads: Sequence[float] = list(nodes.loads().values())
    return Growth(
        second=round(nodes.second, 3),
        factor=nodes.log.factor(nodes.system.clock.now),
        nodes=len(loads),
        owners=sum(load > 0 for load in loads),
        busiest=max(loads) / nodes.power.speed,
        behind=nodes.behind(),
        moves=nodes.moves,
    )
