"""Two choices: of two brokers at random, the one that is less loaded with the newcomer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tocsin.balance.placement.place import Newcomer, View


@dataclass
class TwoChoices:
    """Draws two open brokers and takes the one whose load (÷ capacity) with the newcomer is lower, of equals the one
    drawn first: before anything is published all are equal, and newcomers are spread all the same.

    What the newcomer adds to a broker is its own load and the incoming load of what the broker does not hold yet; as
    long as its subscriptions are unknown, that is nothing. Newcomers that come together are spread, since the least
    loaded broker is drawn for few of them, and the most loaded one still takes none.
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
        return int(drawn[np.argmin(view.after(newcomer, drawn))])
