"""How a broker keeps its two links, to coordinator and data cluster: how often it speaks, when it dials again."""

from __future__ import annotations

from random import Random
from typing import Final

BEAT_SECONDS: Final = 1.0
"""The coordinator hears from a broker at least as often."""
FIRST: Final = 0.1
LONGEST: Final = 5.0
# A connection that lasts for less was no success: the peer may let everybody in, and end them for what they say.
STEADY: Final = 5.0


class Backoff:
    """Waits that double, and are never the same for two brokers; short again once a connection has lasted."""

    def __init__(self, random: Random) -> None:
        self._random, self._longest = random, 0.0

    def after(self, lasted: float) -> float:
        """The wait, in seconds, after a connection that could be used for ``lasted`` seconds, 0 for none."""
        again = 2 * self._longest if lasted < STEADY else FIRST
        self._longest = min(LONGEST, max(FIRST, again))
        return self._random.uniform(self._longest / 2, self._longest)
