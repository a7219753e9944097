"""Round robin (RR): every broker gets as many newcomers as every other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tocsin.balance.placement.placement import Newcomer, View


@dataclass
class RoundRobin:
    """The next open broker after the last one chosen. Numbers of subscribers are then even, loads need not be."""

    name: ClassVar[str] = "round-robin"
    _last: int = field(default=-1, init=False)

    def place(self, view: View, newcomer: Newcomer) -> int:  # noqa: ARG002
        """The next broker, whoever comes."""
        brokers = view.choices()
        at = int(np.searchsorted(brokers, self._last, side="right")) % len(brokers)
        self._last = int(brokers[at])
        return self._last
