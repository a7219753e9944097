"""What executions find for each BE subscription, in bytes: now, and at any execution before."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from tocsin.balance.model.workload import Int64s


class Sizes:
    """By the number of the BE subscription; the first is 1."""

    def __init__(self, count: int) -> None:
        self.now: Int64s = np.zeros(count + 1, np.int64)
        self._since: list[list[int]] = [[] for _ in self.now]
        self._sizes: list[list[int]] = [[] for _ in self.now]

    def set(self, be: int, execution: int, size: int) -> None:
        """From this execution on it is so much; of what is said of the same one, the last counts."""
        self.now[be] = size
        since, sizes = self._since[be], self._sizes[be]
        if since and since[-1] == execution:
            sizes[-1] = size
        else:
            since.append(execution)
            sizes.append(size)

    def at(self, be: int, execution: int) -> int:
        """What an execution found."""
        return self._sizes[be][bisect_right(self._since[be], execution) - 1]
