"""What a planner did on one instance."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from tocsin.experiment.table import Row


class PlanRow(Row, frozen=True):
    """One row per planner and instance."""

    TABLE: ClassVar = "plans"

    brokers: Annotated[int, Meta(description="how many brokers there are")]
    subscribers: Annotated[int, Meta(description="how many subscribers there are")]
    subscriptions: Annotated[int, Meta(description="how many BE subscriptions there are")]
    frontend: Annotated[int, Meta(description="how many FE subscriptions there are")]
    seed: Annotated[int, Meta(description="of the instance")]
    planner: Annotated[str, Meta(description="its name; “migrate to gsh” stops where GSH ends")]
    bound: Annotated[float, Meta(description="bytes per second: no assignment has a lower highest load")]
    before: Annotated[float, Meta(description="highest load of a broker before, bytes per second")]
    after: Annotated[float, Meta(description="highest load of a broker afterwards, bytes per second")]
    cov_before: Annotated[float, Meta(description="σ ÷ μ of the loads before")]
    cov_after: Annotated[float, Meta(description="σ ÷ μ of the loads afterwards")]
    moved: Annotated[int, Meta(description="how many subscribers end on another broker")]
    least: Annotated[int, Meta(description="no plan with this highest load moves fewer")]
    seconds: Annotated[float, Meta(description="to make the plan, on one core, code compiled before")]
    mebibytes: Annotated[float, Meta(description="peak of the process's memory meanwhile, the instance included")]

    @property
    def ratio(self) -> float:
        """The highest load over the bound."""
        return self.after / self.bound if self.bound else 1.0
