"""How a simulated system places and balances."""

from __future__ import annotations

from dataclasses import dataclass, field

from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.placement.placement import Placement
from tocsin.balance.policies import placement
from tocsin.coordinator.balancing import Planners


@dataclass(frozen=True)
class Policy:
    """Names of policies, and thresholds. ``balancing`` off: subscribers stay where they were placed."""

    placement: str = "nearest"
    migration: str = "migrate"
    shuffle: str = "shuffle"
    thresholds: Thresholds = field(default_factory=Thresholds.product)
    balancing: bool = True

    @property
    def name(self) -> str:
        """For figures: placement, then what balances."""
        return f"{self.placement}+{self.migration}+{self.shuffle}" if self.balancing else f"{self.placement}+none"

    def make_placement(self) -> Placement:
        """A new placement."""
        return placement(self.placement)

    def planners(self) -> Planners:
        """What balances."""
        return Planners.by_name(self.migration, self.shuffle, self.thresholds)
