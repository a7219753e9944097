"""Two choices: of two brokers at random, the one that is less loaded with the newcomer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tocsin.balance.placement.placement import Newcomer, View


@dataclass
class TwoChoices:
    """Draws two open brokers and takes the one whose load (÷ capacity) with the newcomer is lower, of equals the one
    drawn first.

    What the newcomer adds to a broker is its own load and the incoming load of what the broker does not hold yet. As
    long as no load of it is known, it is taken to bring what others have on average, and so is everybody who was placed
    and has no load yet. So those who come together are spread: brokers fill up to the same load, and where nothing is
    published to the same number.
    """

    seed: int = 0

    name: ClassVar[str] = "two-choices"
    _random: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def place(self, view: View, newcomer: Newcomer) -> int:
        """The better of two brokers for this newcomer."""
        brokers = view.choices()
        drawn = self._random.choice(brokers, min(2, len(brokers)), replace=False)
        return int(drawn[np.argmin(view.expected_loads(newcomer, drawn))])
