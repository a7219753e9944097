"""How much each publisher may say: what is too much waits until it is not, and nobody is cut off for it."""

from __future__ import annotations

from typing import Final

_BURST_SECONDS: Final = 2.0
# So many are looked through for those that count no more, each time that one comes.
_MOST_IDLE: Final = 1000


class TokenBucket:
    """So many tokens a second, and ``most`` at once. It may be overdrawn: then the next must wait for longer."""

    def __init__(self, per_second: float, most: float, now: float) -> None:
        self._per_second, self._most = per_second, most
        self._left, self._at = most, now

    def take(self, tokens: float, now: float) -> float:
        """Takes some; in how many seconds that is not too much."""
        self._left, self._at = min(self._most, self._left + (now - self._at) * self._per_second) - tokens, now
        return max(0.0, -self._left / self._per_second)

    def is_full(self, now: float) -> bool:
        """Whether it is as when it was made."""
        return self._left + (now - self._at) * self._per_second >= self._most


class PublishingRate:
    """One bearer's publications and their bytes, on however many connections."""

    def __init__(self, per_second: float, bytes_per_second: float, now: float) -> None:
        self._publications = TokenBucket(per_second, _BURST_SECONDS * per_second, now)
        self._bytes = TokenBucket(bytes_per_second, _BURST_SECONDS * bytes_per_second, now)

    def take(self, size: int, now: float) -> float:
        """Counts a publication of so many bytes; how many seconds it must wait."""
        return max(self._publications.take(1, now), self._bytes.take(size, now))

    def is_unused(self, now: float) -> bool:
        """Whether nothing of it has been used that is not there again."""
        return self._publications.is_full(now) and self._bytes.is_full(now)


class PublishingRates:
    """The rates of all who publish to a head: one for each bearer of a signed token, wherever it has come from; one for
    each connection of others, who cannot be told from each other."""

    def __init__(self, per_second: float, bytes_per_second: float) -> None:
        self._per_second, self._bytes_per_second = per_second, bytes_per_second
        self._bearers: dict[str, PublishingRate] = {}

    def of(self, bearer: str, now: float) -> PublishingRate:
        """Of whom a new connection is; without a name nobody else has it."""
        if rate := self._bearers.get(bearer):
            return rate
        rate = PublishingRate(self._per_second, self._bytes_per_second, now)
        if bearer:
            if len(self._bearers) >= _MOST_IDLE:
                self._bearers = {name: each for name, each in self._bearers.items() if not each.is_unused(now)}
            self._bearers[bearer] = rate
        return rate
