"""The way out of a broker as a queue of bounded speed: how long what it sends has to wait, and frames that do."""

from __future__ import annotations

import numpy as np

from tocsin.balance.model.workload import Floats
from tocsin.simulate.clock import VirtualClock
from tocsin.simulate.network import SimulatedConnection

_EDGES: Floats = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 401)])


class OutgoingQueue:
    """First come, first served, ``capacity`` bytes per second; without one, nothing waits.

    Frames are pushed one by one. What an execution brings can be added at once: its first delivery waits for the
    backlog alone, and its last for all of it. Latencies are kept in 401 classes of 5 % each.
    """

    def __init__(self, capacity: float | None = None) -> None:
        self._capacity = capacity
        self._free = 0.0
        self._counts: Floats = np.zeros(len(_EDGES))

    def push(self, now: float, size: float) -> float:
        """Queues so many bytes; when the last of them has left."""
        if self._capacity is None:
            return now
        self._free = max(self._free, now) + size / self._capacity
        return self._free

    def add(self, now: float, size: float, deliveries: int) -> None:
        """Queues what goes to so many, and notes how late each gets it."""
        if self._capacity is None:
            self._counts[0] += deliveries
            return
        least = self.seconds(now)
        most = self.push(now, size) - now
        first, last = _class(least), _class(most)
        parts = (_EDGES[first:last] - least) / (most - least)
        self._counts[first : last + 1] += deliveries * np.diff(parts, prepend=0.0, append=1.0)

    def late(self, seconds: float, deliveries: float) -> None:
        """So many deliveries were so late."""
        self._counts[_class(seconds)] += deliveries

    def seconds(self, now: float) -> float:
        """Until all that waits has left."""
        return max(0.0, self._free - now)

    def backlog(self, now: float) -> float:
        """Bytes that wait."""
        return self.seconds(now) * self._capacity if self._capacity else 0.0

    @property
    def counts(self) -> Floats:
        """Deliveries by class of latency; those of several queues may be added up."""
        return self._counts


class Outlet:
    """Sends frames on the accepting ends of connections, one after the other at the speed of a queue.

    What can go wrong: a connection ends while something waits for it (that is lost, but takes its time all the same).
    """

    def __init__(self, clock: VirtualClock, queue: OutgoingQueue) -> None:
        self._clock, self._queue = clock, queue
        self._waiting: dict[SimulatedConnection, int] = {}

    def send(self, link: SimulatedConnection, frame: bytes) -> None:
        """Sends a frame, after all that was sent before on any connection."""
        now = self._clock.now
        leaves = self._queue.push(now, len(frame))
        if leaves > now:
            self._waiting[link] = self.waiting(link) + len(frame)
            self._clock.at(leaves, self._leave, link, frame)
        else:
            link.send(1, frame)

    def close(self, link: SimulatedConnection, code: int) -> None:
        """Ends a connection, after what was sent on it."""
        if link in self._waiting:
            self._clock.at(self._queue.push(self._clock.now, 0), link.close, 1, code)
        else:
            link.close(1, code)

    def waiting(self, link: SimulatedConnection) -> int:
        """Bytes for a connection that have not left."""
        return self._waiting.get(link, 0)

    def _leave(self, link: SimulatedConnection, frame: bytes) -> None:
        self._waiting[link] -= len(frame)
        if not self._waiting[link]:
            del self._waiting[link]
        link.send(1, frame)


def _class(seconds: float) -> int:
    """Of what is later than all classes, the last."""
    return min(int(np.searchsorted(_EDGES, seconds)), len(_EDGES) - 1)


def quantile(counts: Floats, part: float) -> float:
    """The latency that this part of all deliveries does not exceed, in seconds."""
    total = counts.sum()
    if not total:
        return 0.0
    return float(_EDGES[min(np.searchsorted(np.cumsum(counts), part * total), len(_EDGES) - 1)])
