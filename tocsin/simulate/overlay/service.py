"""Service times of a broker's machine: one publication at a time is matched, and what is sent waits for the bandwidth.

Control messages overtake what waits, and take no time. So a broker that has more to match or to send than it can is
late with publications, and still hears and says how it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tocsin.overlay.events import Gauged
from tocsin.simulate.clock import VirtualClock
from tocsin.simulate.queueing import OutgoingQueue


@dataclass(frozen=True)
class ServiceTimes:
    """What a machine takes.

    Args:
        subscription_seconds: to match a publication against one subscription; matching delay grows linearly with them.
        bandwidth: bytes per second that it can send.
        memory_bytes: the memory that there is.
        first_bytes: of that, what a broker takes without subscriptions.
        subscription_bytes: what each subscription takes.
        message_bytes: what each publication takes that waits to be matched.
    """

    subscription_seconds: float
    bandwidth: float
    memory_bytes: float
    first_bytes: float = 16e6
    subscription_bytes: float = 10e3
    message_bytes: float = 2e3

    def matching_seconds(self, subscriptions: int) -> float:
        """The matching delay; without subscriptions, what it is with one."""
        return self.subscription_seconds * max(1, subscriptions)


class BrokerService:
    """A machine at work for one broker.

    Args:
        subscriptions: how many there are in the matching engine now.
        matched: is told of what has been matched, in the order in which it came.

    ``taken`` counts the publications that have come.
    """

    def __init__(
        self,
        clock: VirtualClock,
        times: ServiceTimes,
        subscriptions: Callable[[], int],
        matched: Callable[[Any], None],
    ) -> None:
        self.times, self._clock, self._subscriptions, self._matched = times, clock, subscriptions, matched
        self._waiting: deque[tuple[Any, bool]] = deque()
        self._serving = False
        self._began = self._ends = clock.now
        self._output = OutgoingQueue(times.bandwidth)
        self._busy = self._busy_before = 0.0
        self._gauged = clock.now
        self.taken = self._taken_before = 0

    def take(self, item: Any, instant: bool = False) -> None:
        """Something has come to be matched; what is ``instant`` takes no time, and keeps its place all the same."""
        self._waiting.append((item, instant))
        self.taken += not instant
        if not self._serving:
            self._serve()

    def send(self, size: float) -> float:
        """Queues so many bytes; when the last of them has left."""
        return self._output.push(self._clock.now, size)

    @property
    def waiting(self) -> int:
        """Publications that wait to be matched, or are."""
        return len(self._waiting) + self._serving

    @property
    def input_seconds(self) -> float:
        """How long what comes now waits to be matched."""
        left = max(0.0, self._ends - self._clock.now) if self._serving else 0.0
        return left + len(self._waiting) * self.matching_seconds

    @property
    def output_seconds(self) -> float:
        """How long what is sent now waits."""
        return self._output.seconds(self._clock.now)

    def gauge(self) -> Gauged:
        """What a broker would measure of it, the processor since the last time."""
        times, now = self.times, self._clock.now
        busy = self._busy + (now - self._began if self._serving else 0.0)
        passed, used = now - self._gauged, busy - self._busy_before
        arrived, self._taken_before = self.taken - self._taken_before, self.taken
        self._gauged, self._busy_before = now, busy
        memory = (
            times.first_bytes
            + self._subscriptions() * times.subscription_bytes
            + self.waiting * times.message_bytes
            + self._output.backlog(now)
        )
        return Gauged(
            self.matching_seconds,
            times.bandwidth,
            input_seconds=self.input_seconds,
            output_seconds=self.output_seconds,
            cpu=min(1.0, used / passed) if passed else 0.0,
            memory=memory,
            memory_bytes=times.memory_bytes,
            subscription_bytes=times.subscription_bytes,
            arrived=arrived,
        )

    @property
    def matching_seconds(self) -> float:
        """What matching a publication takes now."""
        return self.times.matching_seconds(self._subscriptions())

    def _serve(self) -> None:
        """Begins with the next; what takes no time is over at once."""
        while self._waiting:
            item, instant = self._waiting.popleft()
            if not instant:
                self._serving, self._began = True, self._clock.now
                self._ends = self._began + self.matching_seconds
                self._clock.at(self._ends, self._finish, item)
                return
            self._matched(item)

    def _finish(self, item: Any) -> None:
        self._serving = False
        self._busy += self._clock.now - self._began
        self._matched(item)
        # What was matched may have brought something to be matched, and so have begun.
        if not self._serving:
            self._serve()
