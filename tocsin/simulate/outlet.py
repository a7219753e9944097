"""The way out of a broker: what it sends to its subscribers leaves one after the other, at the speed of its queue."""

from __future__ import annotations

from tocsin.simulate.clock import VirtualClock
from tocsin.simulate.network import SimulatedConnection
from tocsin.simulate.queueing import OutgoingQueue


class Outlet:
    """Sends frames on the accepting ends of connections, whosever turn it is.

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
