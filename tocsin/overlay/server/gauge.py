"""Measuring an edge: what matching takes, what waits, and how much of the machine is in use."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Final

from tocsin.broker.accounting import Meter
from tocsin.overlay.edge import Edge
from tocsin.overlay.events import Gauged
from tocsin.overlay.server.driver import OverlayDriver

GAUGE_SECONDS: Final = 1.0
# What matching is said to take before the first publication has come.
_FIRST_SECONDS: Final = 0.0001
_STATUS: Final = Path("/proc/self/statm")


class Gauge:
    """Tells an edge's core every second what was measured.

    Args:
        bandwidth: bytes per second that can be sent.
        memory_bytes: the memory that it may use.
        span: of the moving average of what matching takes, in seconds.
    """

    def __init__(
        self, driver: OverlayDriver, edge: Edge, bandwidth: float, memory_bytes: float, span: float = 30.0
    ) -> None:
        self._driver, self._edge, self._bandwidth, self._memory_bytes = driver, edge, bandwidth, memory_bytes
        self._matching_seconds, self._memory = _FIRST_SECONDS, SubscriptionMemory(_memory())
        self._matched, self._seconds, self._matched_against, self._sent = 0, 0.0, 1, 0
        self._matches, self._spent = Meter(span, driver.now), Meter(span, driver.now)

    async def run(self) -> None:
        """Measures for ever."""
        used, at = time.process_time(), time.monotonic()
        self._driver.tell(self.measure(0.0, 0.0))
        while True:
            await asyncio.sleep(GAUGE_SECONDS)
            used_before, used, before, at = used, time.process_time(), at, time.monotonic()
            late = max(0.0, at - before - GAUGE_SECONDS)
            self._driver.tell(self.measure((used - used_before) / (at - before), late))

    def measure(self, cpu: float, late: float) -> Gauged:
        """What is to be told now. ``late`` is by how much the loop woke up too late, as whatever comes in does."""
        driver, subscriptions = self._driver, len(self._edge.subscriptions)
        self._match(max(1, subscriptions))
        memory, each = self._memory.measure(_memory(), subscriptions)
        sent, self._sent = driver.sent_bytes - self._sent, driver.sent_bytes
        return Gauged(
            self._matching_seconds,
            self._bandwidth,
            input_seconds=late,
            output_seconds=driver.waiting_bytes / self._bandwidth,
            cpu=min(1.0, cpu),
            memory=memory,
            memory_bytes=self._memory_bytes,
            subscription_bytes=each,
            sent=sent,
        )

    def _match(self, subscriptions: int) -> None:
        """What matching takes, on the average; if nothing has come, what it would take with these subscriptions, by
        equation 4: an edge that has sent all of them away gets nothing to measure it with."""
        driver, now = self._driver, self._driver.now
        if count := driver.matched - self._matched:
            self._matches.add(now, count)
            self._spent.add(now, driver.matching_seconds - self._seconds)
            self._matching_seconds = self._spent.rate(now) / self._matches.rate(now)
        elif driver.matched:
            self._matching_seconds *= subscriptions / self._matched_against
        self._matched, self._seconds = driver.matched, driver.matching_seconds
        self._matched_against = subscriptions


class SubscriptionMemory:
    """The memory that is in use, without what subscriptions have left behind: the process keeps that for those who
    come next, and an edge would send everybody away if it counted.

    Args:
        first: the bytes in use without subscriptions.
    """

    def __init__(self, first: float) -> None:
        self._first = self._at_most = first
        self._most, self._each = 0, 0.0

    def measure(self, used: float, subscriptions: int) -> tuple[float, float]:
        """The bytes in use, of all that the process has, and what each subscription takes: by when there were most."""
        if subscriptions >= max(1, self._most):
            self._most, self._at_most = subscriptions, used
            self._each = max(0.0, used - self._first) / subscriptions
        given_back = max(0.0, self._at_most - used)
        left_behind = self._each * (self._most - subscriptions) - given_back
        return used - max(0.0, left_behind), self._each


def _memory() -> float:
    """The bytes in use; 0 where the system does not say."""
    try:
        return float(int(_STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, IndexError):
        return 0.0
