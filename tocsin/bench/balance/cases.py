"""The planners as they are measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tocsin.balance.planners.planner import Planner
from tocsin.balance.policies import planner as planner_of
from tocsin.bench.balance import targets
from tocsin.bench.balance.mtkahypar import MtKaHyPar


@dataclass(frozen=True)
class Case:
    """A planner with its settings.

    Args:
        as_low_as: the name of a case whose highest load is its target.
        targets: its target, in multiples of LB1, for each kind that it is for; for all kinds if there are none.
    """

    planner: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    as_low_as: str = ""
    targets: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called in the table."""
        goal = self.as_low_as or ("target" if self.targets else "")
        return f"{self.planner} to {goal}" if goal else self.planner

    def concerns(self, kind: str) -> bool:
        """Whether it is measured on instances of a kind."""
        return not self.targets or kind in self.targets

    def make_planner(self) -> Planner:
        """The planner."""
        return MtKaHyPar() if self.planner == MtKaHyPar.name else planner_of(self.planner, **self.settings)


BASELINE = Case("gsh")
PEER = Case(MtKaHyPar.name)
CASES = (
    BASELINE,
    Case("ldm", {"alpha": 0.05}),
    Case("sdm", {"alpha": 0.05}),
    Case("multistage"),
    Case("shuffle"),
    Case("migrate"),
    Case("migrate", as_low_as=BASELINE.name),
    Case("migrate", targets=targets.MIGRATED),
)
