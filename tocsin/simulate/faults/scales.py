"""What brokers really bring in and send out, weighed on the wire, to be compared with what they account."""

from __future__ import annotations

from math import exp

from tocsin.broker.limits import Limits
from tocsin.model import control
from tocsin.simulate.brokerhost import BrokerHost
from tocsin.simulate.weighing import note_size, notes


class Weights:
    """Bytes with their times, as a moving average."""

    def __init__(self, span: float) -> None:
        self._span = span
        self._weighed: list[tuple[float, int]] = []

    def add(self, now: float, count: int) -> None:
        """Counts bytes."""
        self._weighed.append((now, count))

    def rate(self, now: float) -> float:
        """Bytes per second."""
        return sum(count / self._span * exp((at - now) / self._span) for at, count in self._weighed)


class Scales:
    """Weighs one broker: what goes out from its start on, what comes in from :meth:`begin` on.

    Before that, pulls for those who are behind would be weighed too, which are no part of I.
    """

    def __init__(self, broker: BrokerHost, limits: Limits) -> None:
        self._broker, self._span = broker, limits.rate_seconds
        self._outgoing, self._incoming = Weights(self._span), Weights(self._span)
        self._began: tuple[float, float] | None = None
        broker.sent, broker.pulled = self._sent, self._pulled

    def begin(self, now: float) -> None:
        """From now on nobody is behind."""
        self._incoming, self._began = Weights(self._span), (now, self._broker.core.load(now)[0])

    def wrong(self, now: float) -> list[str]:
        """Where the account differs from what was weighed."""
        incoming, outgoing = self._broker.core.load(now)
        weighed = self._outgoing.rate(now)
        found = [] if _same(outgoing, weighed) else [f"accounts O {outgoing:.3f}, but sent {weighed:.3f} bytes/s"]
        if self._began:
            at, before = self._began
            weighed = self._incoming.rate(now) + before * exp((at - now) / self._span)
            if not _same(incoming, weighed):
                found.append(f"accounts I {incoming:.3f}, but pulled {weighed:.3f} bytes/s")
        return [f"{self._broker.host} {text}" for text in found]

    def _sent(self, now: float, frame: bytes) -> None:
        if found := notes(frame):
            self._outgoing.add(now, sum(map(note_size, found)))

    def _pulled(self, now: float, results: control.Results) -> None:
        self._incoming.add(now, sum(map(note_size, results.results)))


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-6 * max(one, other) + 1e-9
