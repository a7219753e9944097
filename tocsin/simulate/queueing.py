"""A broker's outgoing bytes as a queue of bounded speed: how long what it sends has to wait."""

from __future__ import annotations

from math import inf

import numpy as np

from tocsin.balance.workload import Floats

_EDGES: Floats = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 401)])
_PARTS = 4


class Queue:
    """First come, first served, ``capacity`` bytes per second.

    What one execution brings is queued at once, so its first delivery waits for the backlog alone and its last for all
    of it. Latencies are kept in 401 classes of 5 % each.
    """

    def __init__(self, capacity: float | None) -> None:
        self._capacity = capacity or inf
        self._backlog = self._at = 0.0
        self._counts: Floats = np.zeros(len(_EDGES))

    def add(self, now: float, size: float, deliveries: int) -> None:
        """Queues what goes to so many."""
        before = self.backlog(now)
        self._backlog, self._at = before + size, now
        for part in range(_PARTS):
            seconds = (before + size * (part + 0.5) / _PARTS) / self._capacity
            self._counts[np.searchsorted(_EDGES, seconds)] += deliveries / _PARTS

    def backlog(self, now: float) -> float:
        """Bytes that wait."""
        return max(0.0, self._backlog - (now - self._at) * self._capacity) if self._backlog else 0.0

    @property
    def counts(self) -> Floats:
        """Deliveries by class of latency; those of several queues may be added up."""
        return self._counts


def quantile(counts: Floats, part: float) -> float:
    """The latency that this part of all deliveries does not exceed, in seconds."""
    total = counts.sum()
    if not total:
        return 0.0
    return float(_EDGES[min(np.searchsorted(np.cumsum(counts), part * total), len(_EDGES) - 1)])
