"""How long the oldest record that its dataset lacks has waited."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

_SECONDS = 0.25


class Lag:
    """Remembers how long the log was when, a few times a second. May be used from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lengths: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()

    def observe(self, length: int, read: int) -> None:
        """The log is now this long, and has been read up to there."""
        with self._lock:
            now = self._clock()
            if not self._lengths or now - self._lengths[-1][0] >= _SECONDS or self._lengths[-1][1] <= read:
                self._lengths.append((now, length))
            while len(self._lengths) > 1 and self._lengths[1][1] <= read:
                self._lengths.popleft()

    def seconds(self) -> float:
        """How long ago all that was there had been read, to about a quarter of a second."""
        with self._lock:
            return self._clock() - self._lengths[0][0] if self._lengths else 0.0
