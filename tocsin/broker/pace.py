"""How fast a subscriber may speak: so many messages, beyond which its connection ends, and so many bytes, beyond which
it is read later.

That is the subscriber's and not its connection's: who comes back has what was left, or every connection would bring as
much again.
"""

from __future__ import annotations

from typing import Final

from tocsin.broker.limits import BrokerLimits

_BURST_SECONDS: Final = 2.0


class SubscriberPace:
    """What one subscriber may still say; it grows with time, up to what may be said at once."""

    __slots__ = ("_at", "_bytes", "_limits", "_messages")

    def __init__(self, limits: BrokerLimits, now: float) -> None:
        self._limits, self._at = limits, now
        self._messages, self._bytes = limits.message_burst, _BURST_SECONDS * limits.bytes_per_second

    def exceeds(self, now: float, messages: int = 1) -> bool:
        """Counts messages; whether there were too many."""
        self._earn(now)
        self._messages -= messages
        return self._messages < 0

    def wait(self, now: float, size: int) -> float:
        """Counts so many bytes; for how many seconds nothing more is to be read."""
        self._earn(now)
        self._bytes -= size
        return max(0.0, -self._bytes / self._limits.bytes_per_second)

    def _earn(self, now: float) -> None:
        limits, seconds, self._at = self._limits, now - self._at, now
        self._messages = min(limits.message_burst, self._messages + seconds * limits.messages_per_second)
        most = _BURST_SECONDS * limits.bytes_per_second
        self._bytes = min(most, self._bytes + seconds * limits.bytes_per_second)
