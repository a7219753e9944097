"""Nearest broker (NR) placement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tocsin.balance.placement.placement import Newcomer, Placement, View
from tocsin.balance.placement.roundrobin import RoundRobin


@dataclass
class Nearest:
    """The open broker at the least distance, of equals the lower number. Where people crowd, so do subscribers.

    Args:
        otherwise: places those whose location is unknown, and everybody if the brokers' locations are.
    """

    otherwise: Placement = field(default_factory=RoundRobin)

    name: ClassVar[str] = "nearest"

    def place(self, view: View, newcomer: Newcomer) -> int:
        """The nearest broker to where the newcomer is."""
        if view.locations is None or newcomer.location is None:
            return self.otherwise.place(view, newcomer)
        brokers = view.choices()
        x, y = (view.locations[brokers] - newcomer.location).T
        return int(brokers[np.argmin(x * x + y * y)])
