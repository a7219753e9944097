"""What the controller remembers from round to round: when it last planned, and who was moved lately."""

from __future__ import annotations

from collections import deque

import numpy as np

from tocsin.balance.model.workload import Int64s


class History:
    """Moves of the last ``settle`` seconds; what is older is forgotten.

    A newcomer with the number of somebody who was moved and has left since counts as moved, and so stays for a while.
    """

    def __init__(self, settle: float) -> None:
        self._settle = settle
        self._moved: deque[tuple[float, Int64s]] = deque()
        self._planned = -np.inf

    def plan(self, now: float) -> None:
        """A planner was asked."""
        self._planned = now

    def move(self, now: float, subscribers: Int64s) -> None:
        """These were moved; if nobody was, it is as if this had not been said."""
        if len(subscribers):
            self._planned = now
            self._moved.append((now, subscribers.copy()))

    def since_planned(self, now: float) -> float:
        """Seconds since the last plan or move."""
        return float(now - self._planned)

    def settling(self, now: float) -> Int64s:
        """Who was moved too lately to be moved again."""
        while self._moved and now - self._moved[0][0] >= self._settle:
            self._moved.popleft()
        return np.concatenate([np.empty(0, np.int64), *(subscribers for _, subscribers in self._moved)])
