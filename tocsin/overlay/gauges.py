"""What an edge knows of its own load: counted here, and measured by its driver."""

from __future__ import annotations

from tocsin.broker.accounting import Meter
from tocsin.overlay.events import Gauged
from tocsin.overlay.load import BrokerLoad


class Gauges:
    """An edge's own load. There is none before the driver has measured something.

    Args:
        span: of the moving averages, in seconds.
    """

    def __init__(self, span: float) -> None:
        self._span = span
        self._incoming: Meter | None = None
        self._outgoing: Meter | None = None
        self.measured: Gauged | None = None
        self._at = 0.0

    def measure(self, now: float, measured: Gauged) -> None:
        """The driver says what it has measured."""
        if self._incoming is None or self._outgoing is None:
            self._incoming, self._outgoing = Meter(self._span, now), Meter(self._span, now)
        else:
            if measured.arrived is not None:
                self._incoming.add(now, measured.arrived, now - self._at)
            if measured.sent is not None:
                self._outgoing.add(now, measured.sent, now - self._at)
        self.measured, self._at = measured, now

    def count(self, now: float, sent: int) -> None:
        """A publication came, and so many bytes are sent for it."""
        if self.measured and self._incoming and self._outgoing:
            if self.measured.arrived is None:
                self._incoming.add(now, 1.0)
            if self.measured.sent is None:
                self._outgoing.add(now, sent)

    def arrivals(self, now: float, seconds: float) -> float | None:
        """Publications per second that come, if those that were matched in the last seconds do not tell: they had
        waited for longer than that."""
        measured = self.measured
        if not (measured and self._incoming) or measured.arrived is None or measured.input_seconds <= seconds:
            return None
        return self._incoming.rate(now)

    def load(self, now: float, subscriptions: int) -> BrokerLoad | None:
        """All of it, with so many subscriptions."""
        measured = self.measured
        if not (measured and self._incoming and self._outgoing):
            return None
        return BrokerLoad(
            self._incoming.rate(now),
            measured.matching_seconds,
            self._outgoing.rate(now),
            measured.bandwidth,
            subscriptions,
            measured.cpu,
            measured.memory,
            measured.memory_bytes,
            measured.subscription_bytes,
        )

    @property
    def queued_seconds(self) -> float:
        """Until what has come is matched and sent: input queue, matching, output queue."""
        measured = self.measured
        return measured.input_seconds + measured.matching_seconds + measured.output_seconds if measured else 0.0
