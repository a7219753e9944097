"""The experiment ``padres-local``: four unequal edges of one cluster, and everybody joins the weakest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tocsin.experiment.padres.local.claims import verdicts
from tocsin.experiment.padres.local.names import MAIN, UNBALANCED, samples_run, trigger_run
from tocsin.experiment.padres.local.sections import sections
from tocsin.experiment.padres.rows import EdgeRow, EstimateRow, MessageRow
from tocsin.experiment.padres.run import QuoteRun, RunSettings
from tocsin.experiment.padres.scenario import LOCAL, ScenarioSize, local_scenario
from tocsin.experiment.padres.settings import PadresSettings
from tocsin.experiment.study import ReportSection, StudyData, Tell
from tocsin.experiment.table import Row
from tocsin.experiment.verdict import ClaimVerdict
from tocsin.overlay.tuning import Trigger, Tuning

TRIGGERS: Final = (0.05, 0.1, 0.2, 0.4)
SAMPLES: Final = (1, 5, 10, 50, 100, 200, 400)
OTHERS_SECONDS: Final = 2000.0
"""How long runs other than the main one last: until they are balanced, and a while more."""
_SMALL: Final = ScenarioSize(subscribers=250, joining_until=110.0, doubled_at=300.0, seconds=360.0)


@dataclass(frozen=True)
class LocalBalancing(PadresSettings):
    """Section 6.2 of the paper: one run as it is, and runs with other thresholds and numbers of samples."""

    name = "padres-local"
    title = "PADRES: balancing within a cluster"
    about = (
        "Section 6.2 of “Dynamic Load Balancing in Distributed Content-based Publish/Subscribe” (Cheung and Jacobsen, "
        "2006), on the overlay's shipped cores. Four edges, B1 to B4, whose processor, memory and bandwidth are as 1 "
        "to 2 to 4 to 10, have one head. 40 publishers publish stock quotes, and 2,000 subscribers join B1, the "
        "weakest, within 1,000 seconds; a quarter of them ask for what nobody publishes. At 3,000 seconds half of the "
        "publishers begin to publish twice as much.\n\n"
        "Brokers take their time: one publication at a time is matched, for as long as the number of subscriptions "
        "over the speed of the processor, and what is sent waits for the bandwidth. The paper does not say how long "
        "matching takes on its machines, so that loads are ours, and how they compare is the paper's."
    )
    tables = (EdgeRow, MessageRow, EstimateRow)
    full, small = LOCAL, _SMALL

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the numbers depend on."""
        return {**self.describe(), "runs": self.cells()}

    def cells(self) -> list[str]:
        """The run as in the paper, without balancing, and with other thresholds and samples."""
        triggers, samples = (TRIGGERS[2:3], SAMPLES[:1]) if self.quick else (TRIGGERS, SAMPLES)
        others = [*map(trigger_run, triggers), *map(samples_run, samples)]
        # What the main run has is not run again.
        return [MAIN, UNBALANCED, *(run for run in others if run not in (trigger_run(0.1), samples_run(50)))]

    def measure(self, cell: str, tell: Tell) -> Iterator[Row]:
        """One run."""
        size = self.size
        if cell != MAIN:
            size = replace(size, seconds=min(size.doubled_at, OTHERS_SECONDS))
        scenario = local_scenario(self.seed, self.stock_quotes, size)
        yield from QuoteRun(cell, scenario, self.seed, _settings(cell)).run(tell).rows

    def sections(self, data: StudyData) -> list[ReportSection]:
        """The report's parts."""
        return sections(data)

    def verdicts(self, data: StudyData) -> list[ClaimVerdict]:
        """The claims."""
        return verdicts(data)


def _settings(cell: str) -> RunSettings:
    for trigger in TRIGGERS:
        if cell == trigger_run(trigger):
            return RunSettings(Tuning(local=Trigger(trigger, trigger)))
    for samples in SAMPLES:
        if cell == samples_run(samples):
            return RunSettings(Tuning(samples=samples))
    return RunSettings(balancing=cell != UNBALANCED)
