"""What brokers really take in and send out, weighed on the wire, to be compared with what they account."""

from __future__ import annotations

from tocsin.model import control
from tocsin.simulate.brokerhost import BrokerHost
from tocsin.simulate.weighing import note_size, notes


class Scales:
    """Weighs one broker from its start on: all that it pulls and sends, also for those who are behind."""

    def __init__(self, broker: BrokerHost) -> None:
        self._broker = broker
        self._received = self._sent = 0
        broker.sent, broker.pulled = self._send, self._pull

    def wrong(self) -> list[str]:
        """Where the account differs from what was weighed."""
        accounted = self._broker.core.traffic.received, self._broker.core.traffic.sent
        weighed = self._received, self._sent
        if accounted == weighed:
            return []
        return [f"{self._broker.host} accounts {accounted} bytes in and out, but these were {weighed}"]

    def _send(self, now: float, frame: bytes) -> None:  # noqa: ARG002
        self._sent += sum(map(note_size, notes(frame)))

    def _pull(self, now: float, results: control.Results) -> None:  # noqa: ARG002
        self._received += sum(map(note_size, results.results))
