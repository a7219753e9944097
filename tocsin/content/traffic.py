"""PRESS: what a subscription costs, by which of the latest publications it matches.

While publications are sampled, each subscription has a bit for each of them: 1 if it matched. The first sample is the
rightmost bit. With the rate at which publications came meanwhile, the bits tell the rate of any set of subscriptions,
and how much of it another broker receives already, without a model of what is published. Vectors are whole numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

SAMPLES: Final = 50
"""N: how many publications are sampled, by default."""


class Samples(Generic[Key]):
    """The bit vectors of all that matched while publications were sampled.

    Args:
        most: N; publications after that many are not recorded.
    """

    def __init__(self, most: int = SAMPLES) -> None:
        self.most, self.taken = most, 0
        self._vectors: dict[Key, int] = {}

    @property
    def complete(self) -> bool:
        """Whether there are as many as wanted."""
        return self.taken >= self.most

    def record(self, matched: Iterable[Key]) -> None:
        """A publication came, and matched these."""
        if self.complete:
            return
        bit = 1 << self.taken
        for key in matched:
            self._vectors[key] = self._vectors.get(key, 0) | bit
        self.taken += 1

    def vector(self, key: Key) -> int:
        """Which samples matched."""
        return self._vectors.get(key, 0)

    def union(self, keys: Iterable[Key]) -> int:
        """Which samples matched any of these: as a CSS's vector."""
        merged = 0
        for key in keys:
            merged |= self.vector(key)
        return merged

    def rate(self, vector: int, incoming: float) -> float:
        """Equation 2: publications per second that a vector stands for, of ``incoming`` in all."""
        return incoming * vector.bit_count() / self.taken if self.taken else 0.0


def added_samples(vector: int, received: int) -> int:
    """Equation 3, ANDNOT: the samples of a vector that are not received already."""
    return vector & ~received
