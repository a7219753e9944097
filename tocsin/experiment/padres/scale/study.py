"""The experiment ``padres-scale``: more edges in a cluster, and more clusters in a chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tocsin.experiment.padres.rows import EdgeRow
from tocsin.experiment.padres.run import QuoteRun, RunSettings
from tocsin.experiment.padres.scale.report import clusters_run, edges_run, sections, verdicts
from tocsin.experiment.padres.scenario import (
    GLOBAL,
    LOCAL,
    QuoteScenario,
    ScenarioSize,
    clusters_scenario,
    edges_scenario,
)
from tocsin.experiment.padres.settings import PadresSettings
from tocsin.experiment.study import ReportSection, StudyData, Tell
from tocsin.experiment.table import Row
from tocsin.experiment.verdict import ClaimVerdict

EDGES: Final = (2, 3, 4, 6, 8)
CLUSTERS: Final = (1, 2, 3, 4, 5, 6)
_EDGES_SIZE: Final = replace(LOCAL, seconds=2000.0)
_CLUSTERS_SIZE: Final = replace(GLOBAL, seconds=4000.0)
_SMALL: Final = ScenarioSize(subscribers=150, joining_until=60.0, doubled_at=1e9, seconds=180.0)


@dataclass(frozen=True)
class PadresScale(PadresSettings):
    """Figures 6g and 8d of the paper."""

    name = "padres-scale"
    title = "PADRES: more edges, more clusters"
    about = (
        "Figures 6g and 8d of “Dynamic Load Balancing in Distributed Content-based Publish/Subscribe” (Cheung and "
        "Jacobsen, 2006), on the overlay's shipped cores. All edges have 500 MHz, 128 MB and 3 Mb/s, heads 2 GHz, "
        "512 MB and 10 Mb/s. Publishers and subscribers are those of the local and the global set-up; nobody publishes "
        "more later. What is compared is how long a delivery takes in the last 500 seconds."
    )
    tables = (EdgeRow,)
    full, small = _EDGES_SIZE, _SMALL

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the numbers depend on."""
        return {**self.describe(), "seconds with clusters": self._chain_size.seconds}

    @property
    def smaller(self) -> str:
        """What a quick run has less of."""
        return f"{_SMALL.subscribers} of {LOCAL.subscribers:,} subscribers" if self.quick else ""

    def cells(self) -> list[str]:
        """Each number of edges, then each number of clusters."""
        edges, clusters = (EDGES[:2], CLUSTERS[:2]) if self.quick else (EDGES, CLUSTERS)
        return [*map(edges_run, edges), *map(clusters_run, clusters)]

    def measure(self, cell: str, tell: Tell) -> Iterator[Row]:
        """One run."""
        run = QuoteRun(cell, self._scenario(cell), self.seed, RunSettings())
        yield from (row for row in run.run(tell).rows if isinstance(row, EdgeRow))

    def sections(self, data: StudyData) -> list[ReportSection]:
        """The report's parts."""
        return sections(data.of(EdgeRow))

    def verdicts(self, data: StudyData) -> list[ClaimVerdict]:
        """The claims."""
        return verdicts(data.of(EdgeRow))

    def _scenario(self, cell: str) -> QuoteScenario:
        for number in EDGES:
            if cell == edges_run(number):
                return edges_scenario(self.seed, self.stock_quotes, number, self.size)
        number = next(number for number in CLUSTERS if cell == clusters_run(number))
        return clusters_scenario(self.seed, self.stock_quotes, number, self._chain_size)

    @property
    def _chain_size(self) -> ScenarioSize:
        """Of the runs with clusters."""
        return _SMALL if self.quick else _CLUSTERS_SIZE
