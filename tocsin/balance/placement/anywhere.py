"""Random placement (RND): any broker, each as likely."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tocsin.balance.placement.placement import Newcomer, View


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
