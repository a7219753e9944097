"""Where the world's randomness comes from: one generator per purpose, all from the one seed.

Purposes do not share a generator, so that drawing more of one (say, more people) leaves the others as they were.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What a generator is for. The numbers are part of what a seed means: never reuse or change one."""

    CITY = 0
    SHELTERS = 1
    MOVEMENT = 2
    REPORTS = 3
    INTERESTS = 4


def generator(seed: int, purpose: Purpose, which: int = 0) -> np.random.Generator:
    """The generator of ``seed`` for a purpose, and for one of several (``which``) where each needs its own."""
    return np.random.default_rng([seed, int(purpose), which])
