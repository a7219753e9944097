"""The interface of everything that makes plans."""

from __future__ import annotations

from typing import Protocol

from tocsin.balance.model.plan import Plan
from tocsin.balance.model.problem import Problem


class Planner(Protocol):
    """Makes a plan for a problem; the same problem, the same plan. A planner keeps nothing between calls."""

    @property
    def name(self) -> str:
        """What it is called in settings and on the command line."""

    def plan(self, problem: Problem) -> Plan:
        """What it would do. The highest load is never above the one now, unless a broker drains."""
