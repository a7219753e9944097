"""Least loaded (LL) placement, which the paper warns of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tocsin.balance.placement.placement import Newcomer, View


@dataclass(frozen=True)
class LeastLoaded:
    """The open broker of least load (÷ capacity), of equals the lower number.

    Newcomers have no subscriptions yet and so add no load at first. Many who come at about the same time all get the
    same broker, which they overwhelm together as soon as they subscribe. Two choices at random avoid that.
    """

    name: ClassVar[str] = "least-loaded"

    def place(self, view: View, newcomer: Newcomer) -> int:  # noqa: ARG002
        """The least loaded broker, whoever comes."""
        brokers = view.choices()
        return int(brokers[np.argmin(view.loads[brokers])])
