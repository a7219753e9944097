"""Measuring an edge: what matching takes, what waits, and how much of the machine is in use."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Final

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
    """

    def __init__(self, driver: OverlayDriver, edge: Edge, bandwidth: float, memory_bytes: float) -> None:
        self._driver, self._edge, self._bandwidth, self._memory_bytes = driver, edge, bandwidth, memory_bytes
        self._matching_seconds, self._first_memory = _FIRST_SECONDS, _memory()
        self._matched, self._seconds, self._matched_against = 0, 0.0, 1

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
        memory, subscriptions = _memory(), len(self._edge.subscriptions)
        self._match(max(1, subscriptions))
        each = max(0.0, memory - self._first_memory) / max(1, subscriptions)
        return Gauged(
            self._matching_seconds,
            self._bandwidth,
            input_seconds=late,
            output_seconds=self._driver.waiting_bytes / self._bandwidth,
            cpu=min(1.0, cpu),
            memory=memory,
            memory_bytes=self._memory_bytes,
            subscription_bytes=each,
        )

    def _match(self, subscriptions: int) -> None:
        """What matching has taken since the last time; if nothing has come, what it would take with these
        subscriptions, by equation 4: an edge that has sent all of them away gets nothing to measure it with."""
        driver = self._driver
        if count := driver.matched - self._matched:
            self._matching_seconds = (driver.matching_seconds - self._seconds) / count
        elif driver.matched:
            self._matching_seconds *= subscriptions / self._matched_against
        self._matched, self._seconds = driver.matched, driver.matching_seconds
        self._matched_against = subscriptions


def _memory() -> float:
    """The bytes in use; 0 where the system does not say."""
    try:
        return float(int(_STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, IndexError):
        return 0.0
