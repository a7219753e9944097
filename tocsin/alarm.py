"""The timer of whoever runs a core: it rings when the core wants a Tick."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf


class Alarm:
    """Calls ``ring`` at the earliest of the times it was set to since it last rang, on the running event loop.

    A Tick that comes too early does no harm, so a later time than the one it is set to changes nothing.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring, self._loop = ring, asyncio.get_running_loop()
        # The handle is not asked for its time: uvloop's has none when it is due at once.
        self._handle: asyncio.Handle | None = None
        self._at = inf

    def set(self, at: float) -> None:
        """Rings at this time of the loop's clock, at the latest."""
        if at < self._at:
            self.cancel()
            self._handle, self._at = self._loop.call_at(at, self._due), at

    def cancel(self) -> None:
        """Does not ring before it is set again."""
        if self._handle:
            self._handle.cancel()
        self._handle, self._at = None, inf

    def _due(self) -> None:
        self._handle, self._at = None, inf
        self._ring()
