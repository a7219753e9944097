"""The planners as they are measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tocsin.balance.planner import Planner
from tocsin.balance.registry import planner as planner_of
from tocsin.bench.balance.peer import Peer


@dataclass(frozen=True)
class Case:
    """A planner with its settings; ``as_low_as`` is the name of a case whose highest load is its target."""

    planner: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    as_low_as: str = ""

    @property
    def name(self) -> str:
        """What it is called in the table."""
        return f"{self.planner} to {self.as_low_as}" if self.as_low_as else self.planner

    def made(self) -> Planner:
        """The planner."""
        return Peer() if self.planner == Peer.name else planner_of(self.planner, **self.settings)


BASELINE = Case("gsh")
PEER = Case(Peer.name)
CASES = (
    BASELINE,
    Case("ldm", {"alpha": 0.05}),
    Case("sdm", {"alpha": 0.05}),
    Case("multistage"),
    Case("shuffle"),
    Case("migrate"),
    Case("migrate", as_low_as=BASELINE.name),
)
