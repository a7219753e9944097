"""How many bytes per second: λ of a BE subscription as the data cluster says it, and the broker's own I and O.

Both are the moving average that :mod:`tocsin.data.rates` describes, of notifications as :mod:`tocsin.model.weight`
weighs them, so what the coordinator plans with λ and what brokers measure can be compared.
"""

from __future__ import annotations

from collections.abc import Container
from math import exp, expm1, inf
from typing import Final

LEAST: Final = 0.01
"""A lower rate counts as none."""
TOLERANCE: Final = 0.1
"""A rate that differs by no more than this part is not said again."""
_YOUNGEST: Final = 0.1


class DataRate:
    """λ of a BE subscription. What was said last stands for a while, then it fades with a time constant of ``span``."""

    __slots__ = ("_heard", "_said", "_span", "_until")

    def __init__(self, span: float) -> None:
        self._span, self._said, self._heard, self._until = span, 0.0, 0.0, 0.0

    def hear(self, now: float, rate: float, seconds: float) -> None:
        """The data cluster says that it is so much for so many seconds."""
        self._said, self._heard, self._until = rate, now, now + seconds

    def at(self, now: float, executed: float = -inf, interval: float = 0.0) -> float:
        """Bytes per second. If the channel was ``executed`` since it was said, that has found nothing here: then the
        time up to it counts as well, and the next execution is due ``interval`` seconds after it."""
        fading = max(0.0, now - self._until)
        if executed > self._heard:
            fading = executed - self._heard + max(0.0, now - executed - interval)
        return self._said * exp(-fading / self._span)


class Meter:
    """Bytes per second that a channel brings, each byte's weight fading with a time constant of ``span`` seconds.

    What an execution brings is spread over the time since the one before, and the average stands as long after it.
    It is over the time since ``begun``, so that it is right from the first execution on.
    """

    __slots__ = ("_at", "_average", "_begun", "_span", "_stands")

    def __init__(self, span: float, begun: float) -> None:
        self._span, self._begun = span, begun
        self._average, self._at, self._stands = 0.0, begun, 0.0

    def add(self, now: float, count: float, seconds: float = 0.0) -> None:
        """Counts bytes that stand for the last so many seconds."""
        spread = -expm1(-seconds / self._span) / seconds if seconds > 0 else 1 / self._span
        self._average = self._average * exp((self._at - now) / self._span) + count * spread
        self._begun = min(self._begun, now - seconds)
        self._at, self._stands = now, seconds

    def rate(self, now: float) -> float:
        """Bytes per second, as of now."""
        overdue = max(0.0, now - self._at - self._stands)
        watched = -expm1(-max((self._at - self._begun) / self._span, _YOUNGEST))
        return self._average * exp(-overdue / self._span) / watched


class Traffic:
    """What a broker takes in (I) and sends out (O): ``received`` and ``sent`` are all bytes since its start.

    Each channel is measured by itself, since each has its own time between executions; what is pulled and sent for
    those who are behind comes when it comes. Of channels that bring nothing any more nothing is kept.
    """

    def __init__(self, span: float) -> None:
        self._span = span
        self._begun: float | None = None
        self._incoming: dict[str, Meter] = {}
        self._outgoing: dict[str, Meter] = {}
        self.received = self.sent = 0

    def begin(self, now: float) -> None:
        """From now on something may come; said again, it changes nothing."""
        self._begun = now if self._begun is None else self._begun

    def receive(self, now: float, count: int, channel: str = "", seconds: float = 0.0) -> None:
        """Bytes have come in: those of a channel's last so many seconds, or for those who are behind."""
        self.received += count
        self._meter(self._incoming, now, channel).add(now, count, seconds)

    def send(self, now: float, count: int, channel: str = "", seconds: float = 0.0) -> None:
        """Bytes go out; as above."""
        self.sent += count
        self._meter(self._outgoing, now, channel).add(now, count, seconds)

    def rates(self, now: float) -> tuple[float, float]:
        """I and O, in bytes per second."""
        incoming = sum(meter.rate(now) for meter in self._incoming.values())
        return incoming, sum(meter.rate(now) for meter in self._outgoing.values())

    def _meter(self, meters: dict[str, Meter], now: float, channel: str) -> Meter:
        if channel not in meters:
            self.begin(now)
            for name in [name for name, meter in meters.items() if meter.rate(now) < LEAST]:
                del meters[name]
            meters[channel] = Meter(self._span, now if self._begun is None else self._begun)
        return meters[channel]


class RateChanges:
    """Which rates differ enough from what was last said of them to be said again."""

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        self._tolerance = tolerance
        self._said: dict[int, float] = {}

    def take(self, rates: dict[int, float], held: Container[int]) -> dict[int, float]:
        """Those to say now; one that has faded is said to be 0. Of those no longer ``held`` nothing is said: other
        brokers may hold them, and know better."""
        for be in [be for be in self._said if be not in held]:
            del self._said[be]
        faded = {be: 0.0 for be in self._said if be not in rates}
        changed = faded | {be: self._round(rate) for be, rate in rates.items() if self._differs(be, rate)}
        for be, rate in changed.items():
            if rate:
                self._said[be] = rate
            else:
                self._said.pop(be, None)
        return changed

    def forget(self) -> None:
        """Everything is to be said again."""
        self._said.clear()

    def _round(self, rate: float) -> float:
        return rate if rate >= LEAST else 0.0

    def _differs(self, be: int, rate: float) -> bool:
        said = self._said.get(be, 0.0)
        return abs(self._round(rate) - said) > self._tolerance * said
