"""The paper's placements: nearest broker (NR), round robin (RR), random (RND) and least loaded (LL)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tocsin.balance.placement.placement import Newcomer, Placement, View


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


@dataclass
class Anywhere:
    """Any open broker. The same seed makes the same choices."""

    seed: int = 0

    name: ClassVar[str] = "random"
    _random: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def place(self, view: View, newcomer: Newcomer) -> int:  # noqa: ARG002
        """Any broker, whoever comes."""
        return int(self._random.choice(view.choices()))


@dataclass(frozen=True)
class LeastLoaded:
    """The open broker of least load (÷ capacity), of equals the lower number.

    Newcomers have no subscriptions yet and so add no load at first. Many who come at about the same time all get the
    same broker, which they overwhelm together as soon as they subscribe: the paper warns of it. Two choices at random
    avoid that.
    """

    name: ClassVar[str] = "least-loaded"

    def place(self, view: View, newcomer: Newcomer) -> int:  # noqa: ARG002
        """The least loaded broker, whoever comes."""
        brokers = view.choices()
        return int(brokers[np.argmin(view.loads[brokers])])


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
