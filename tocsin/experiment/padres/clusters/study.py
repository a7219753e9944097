"""The experiment ``padres-global``: four clusters in a chain, and everybody joins an edge of the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tocsin.experiment.padres.clusters.claims import verdicts
from tocsin.experiment.padres.clusters.sections import MAIN, sections
from tocsin.experiment.padres.rows import EdgeRow, EstimateRow, MessageRow
from tocsin.experiment.padres.run import QuoteRun, RunSettings
from tocsin.experiment.padres.scenario import GLOBAL, GLOBAL_EDGES, ScenarioSize, global_scenario
from tocsin.experiment.padres.settings import PadresSettings
from tocsin.experiment.study import ReportSection, StudyData, Tell
from tocsin.experiment.table import Row
from tocsin.experiment.verdict import ClaimVerdict

_SMALL: Final = ScenarioSize(subscribers=200, silent=0.2, joining_until=60.0, doubled_at=240.0, seconds=300.0)


@dataclass(frozen=True)
class GlobalBalancing(PadresSettings):
    """Section 6.3 of the paper."""

    name = "padres-global"
    title = "PADRES: balancing between clusters"
    about = (
        "Section 6.3 of “Dynamic Load Balancing in Distributed Content-based Publish/Subscribe” (Cheung and Jacobsen, "
        "2006), on the overlay's shipped cores. Four clusters, B1x to B4x, of a head and two edges each; their heads "
        "form a chain. 40 publishers publish to B10, and 2,000 subscribers join B11; a fifth of them ask for what "
        "nobody publishes. At 8,000 seconds half of the publishers begin to publish twice as much.\n\n"
        "The speeds of the edges are in a picture that the paper's text does not have. Here the first edge of each "
        "cluster has 200 MHz, 64 MB and 1.2 Mb/s, and the second twice that. Subscribers join within 1,000 seconds, as "
        "in the local set-up, where the paper says only that they join after 10."
    )
    tables = (EdgeRow, MessageRow, EstimateRow)
    full, small = GLOBAL, _SMALL

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the numbers depend on."""
        return {**self.describe(), "edges, MHz": [machine.megahertz for machine in GLOBAL_EDGES]}

    def cells(self) -> list[str]:
        """One run."""
        return [MAIN]

    def measure(self, cell: str, tell: Tell) -> Iterator[Row]:
        """The run."""
        scenario = global_scenario(self.seed, self.stock_quotes, self.size)
        yield from QuoteRun(cell, scenario, self.seed, RunSettings()).run(tell).rows

    def sections(self, data: StudyData) -> list[ReportSection]:
        """The report's parts."""
        return sections(data)

    def verdicts(self, data: StudyData) -> list[ClaimVerdict]:
        """The claims."""
        return verdicts(data)
