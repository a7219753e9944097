"""The experiment ``scale``: every planner on seeded instances of growing size."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.model.plan import Plan as Made
from tocsin.balance.model.problem import Problem
from tocsin.balance.planners.planner import Planner
from tocsin.balance.policies import planner
from tocsin.balance.warming import warm_up
from tocsin.bench.balance.process import forget_peak, one_core, peak_mib
from tocsin.experiment.policies import resolve_policy
from tocsin.experiment.scale.claims import verdicts
from tocsin.experiment.scale.rows import PlanRow
from tocsin.experiment.scale.sections import sections
from tocsin.experiment.study import ReportSection, StudyData, Tell
from tocsin.experiment.table import Row
from tocsin.experiment.verdict import ClaimVerdict

PLANNERS: Final = ("ldm", "sdm", "gsh", "migrate", "shuffle")
SETTINGS: Final[Mapping[str, Mapping[str, float]]] = {"ldm": {"alpha": 0.05}, "sdm": {"alpha": 0.05}}
AS_LOW: Final = "migrate to gsh"

# The same to three decimals: a shuffle ends dead even, and the last byte of that costs most moves.
_AS_LOW = 1.0005


class Size(NamedTuple):
    """How large an instance is."""

    brokers: int
    subscribers: int

    @property
    def cell(self) -> str:
        """Its cell's name."""
        return f"{self.brokers} brokers and {self.subscribers} subscribers"

    @property
    def kind(self) -> InstanceKind:
        """10 to 30 of a tenth as many BE subscriptions each, some far more popular than others; crowded brokers."""
        return InstanceKind(
            self.subscribers, self.brokers, max(self.subscribers // 10, 50), (10, 30), popularity=1.05, skew=0.8
        )


SIZES: Final = (
    *(Size(50, subscribers) for subscribers in (10_000, 30_000)),
    *(Size(brokers, 100_000) for brokers in (5, 10, 20, 50, 100)),
    *(Size(50, subscribers) for subscribers in (300_000, 1_000_000)),
    Size(100, 1_000_000),
)
QUICK: Final = (Size(5, 1_000), Size(5, 3_000), Size(20, 3_000))


@dataclass(frozen=True)
class Scale:
    """Planners against the lower bound. One's own policies are measured beside ours."""

    seed: int = 1
    quick: bool = False
    policies: Sequence[str] = ()

    name = "scale"
    title = "Planning at scale"
    about = (
        "Every planner is given the same seeded instances: subscribers who hold 10 to 30 BE subscriptions each, of "
        "which some are far more popular than others (Zipf, exponent 1.05), and who begin on brokers that are crowded "
        "unevenly (Zipf, exponent 0.8). There are a tenth as many BE subscriptions as subscribers.\n\n"
        "LDM, SDM and GSH are the paper's; migrate and shuffle are ours. The paper's figures end at 10,000 "
        "subscribers. The highest load is given in multiples of a lower bound that no assignment whatever can be "
        "below; no assignment need reach it."
    )
    tables = (PlanRow,)

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the numbers depend on."""
        return {"seed": self.seed, "quick": self.quick, "planners": self._planners(), "planner settings": SETTINGS}

    @property
    def smaller(self) -> str:
        """What a quick run has less of."""
        most = max(QUICK, key=lambda size: size.subscribers).subscribers
        return f"{most:,} subscribers at most, not 10,000 to 1,000,000" if self.quick else ""

    def cells(self) -> list[str]:
        """The sizes, the smallest first."""
        return [size.cell for size in self._sizes()]

    def measure(self, cell: str, tell: Tell) -> Iterator[Row]:
        """All planners on one instance."""
        size = next(size for size in self._sizes() if size.cell == cell)
        tell("making it", 0.0)
        workload, start = make(size.kind, self.seed)
        problem = Problem(workload, start, seed=self.seed)
        names, greedy = self._planners(), 0.0
        for number, name in enumerate(names):
            tell(name, (number + 1) / (len(names) + 2))
            row = _measure_planner(name, _planner(name), problem, self.seed)
            greedy = row.ratio if name == "gsh" else greedy
            yield row
        if greedy:
            tell(AS_LOW, 0.95)
            yield _measure_planner(AS_LOW, planner("migrate"), replace(problem, target=_AS_LOW * greedy), self.seed)

    def sections(self, data: StudyData) -> list[ReportSection]:
        """The report's parts."""
        return sections(data.of(PlanRow))

    def verdicts(self, data: StudyData) -> list[ClaimVerdict]:
        """The claims."""
        return verdicts(data.of(PlanRow))

    def _sizes(self) -> Sequence[Size]:
        return QUICK if self.quick else SIZES

    def _planners(self) -> list[str]:
        return list(dict.fromkeys([*PLANNERS, *map(resolve_policy, self.policies)]))


def _planner(name: str) -> Planner:
    return planner(name, **SETTINGS.get(name, {}))


def _measure_planner(name: str, made: Planner, problem: Problem, seed: int) -> PlanRow:
    with one_core():
        warm_up(made, problem)
        forget_peak()
        began = time.perf_counter()
        plan = made.plan(problem)
        seconds = time.perf_counter() - began
    return _row(name, plan, problem, seed, seconds, peak_mib())


def _row(name: str, plan: Made, problem: Problem, seed: int, seconds: float, mebibytes: float) -> PlanRow:
    workload = problem.workload
    return PlanRow(
        brokers=workload.brokers,
        subscribers=workload.subscribers,
        subscriptions=workload.subscriptions,
        frontend=len(workload.idx),
        seed=seed,
        planner=name,
        bound=plan.lower_bound,
        before=plan.before.max,
        after=plan.after.max,
        cov_before=plan.before.cov,
        cov_after=plan.after.cov,
        moved=len(plan.moves),
        least=plan.moves_lower_bound,
        seconds=seconds,
        mebibytes=mebibytes,
    )
