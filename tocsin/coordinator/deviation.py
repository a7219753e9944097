"""What brokers measure, compared with what was planned: a difference that lasts is a problem, for plans rest on it."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Final

from tocsin.balance.model.units import rate
from tocsin.model.coordination import Load

_LARGE: Final = 0.25
_NOTABLE: Final = 0.1
_TRIFLE: Final = 10.0
_SPANS: Final = 2.0
_SHORTEST, _LONGEST = 0.1, 86_400.0
_MORE: Final = (
    "it handles more than is known of; see whether many who were away are catching up there, and whether "
    "rates.window_seconds and broker.rate_seconds are the same"
)
_LESS: Final = (
    "it handles less than it should; see in its health whether it is cut off from the data cluster, in 'tocsin top' "
    "who is slow there, and whether people come and go faster than coordinator.presence_seconds"
)


@dataclass(slots=True)
class Deviation:
    """A broker's planned load as a moving average like the measured one, and how far they are apart.

    Both are over the last ``span`` seconds, or the time since the broker is there. They are far apart when it is by
    more than a quarter of the larger, a tenth of the brokers' mean load, and 10 bytes per second. That is a problem
    when it is so for longer than two spans: until then, one of them may just be following the other.
    """

    planned: float = 0.0
    measured: float = 0.0
    span: float = _LONGEST
    _at: float | None = None
    _weight: float = 0.0
    _direction: int = 0
    _since: float = 0.0

    def report(self, now: float, load: Load, planned: float, mean: float) -> None:
        """A broker has measured this load, where so much is planned at this moment; ``mean`` is that of all brokers."""
        self.span = min(max(load.span, _SHORTEST), _LONGEST)
        self._average(now, planned)
        self.measured = load.incoming + load.outgoing
        direction = self._apart(mean)
        if direction != self._direction:
            self._direction, self._since = direction, now

    @property
    def problem(self) -> bool:
        """Whether they are far apart, and have been so for long."""
        return self._at is not None and bool(self._direction) and self._at - self._since > _SPANS * self.span

    def sentence(self, broker: str) -> str:
        """What is wrong, for an operator."""
        advice = _MORE if self.measured > self.planned else _LESS
        return f"broker {broker} measures {rate(self.measured)} where {rate(self.planned)} are planned: {advice}"

    def _average(self, now: float, planned: float) -> None:
        if self._at is None or now - self._at > _SPANS * self.span:
            # Of a broker that was away for long, nothing is known of the time between.
            self._at, self._weight, self._direction = now, 0.0, 0
        fading = exp((self._at - now) / self.span)
        kept, self._at = self._weight * fading, now
        self._weight = kept + 1 - fading
        self.planned = planned + (self.planned - planned) * kept / self._weight if kept else planned

    def _apart(self, mean: float) -> int:
        """1 when much more is measured than planned, -1 when much less, 0 when about as much."""
        more = self.measured - self.planned
        large = abs(more) > max(_LARGE * max(self.measured, self.planned), _NOTABLE * mean, _TRIFLE)
        return 0 if not large else 1 if more > 0 else -1


def relative_deviation(measured: float, planned: float) -> float:
    """By which part of the larger of both the measured load is above the planned one, or, negative, below it."""
    return (measured - planned) / max(measured, planned) if measured or planned else 0.0
