"""Deliveries as sums: a broker whose lines are credited with what an execution brings, instead of handing it over.

Logins, subscriptions, attachments, reports and moves go through the core as ever. Only the results stay in the data
cluster: nothing is pulled, and no frame is sent.
"""

from __future__ import annotations

from typing import NamedTuple

from tocsin.broker.core import Broker

# A note's bytes beside its payload and its two numbers: {"s":,"e":,"payload":}
_FRAME = len(b'{"s":,"e":,"payload":}')


class Delivered(NamedTuple):
    """What an execution brought: bytes in, bytes out, and to how many."""

    incoming: int
    outgoing: int
    deliveries: int


class CountedBroker(Broker):
    """A broker's core that can be told of an execution in one go."""

    def count(self, now: float, name: str, execution: int, sizes: dict[int, int]) -> Delivered:
        """Accounts a channel's execution that found ``sizes`` bytes for each BE subscription; those without are 0."""
        channel = self.holdings.channels.get(name)
        if channel is None:
            return Delivered(0, 0, 0)
        incoming = outgoing = deliveries = 0
        frame = _FRAME + len(str(execution))
        for be, line in channel.lines.items():
            if size := sizes.get(be, 0):
                size += frame + len(str(be))
                count = len(line.current) + len(line.ahead)
                self.holdings.active[be] = line
                line.account.incoming.add(now, size)
                self.holdings.active[be] = line
                incoming += size
                outgoing += size * count
                deliveries += count
        channel.seen = channel.level = max(channel.level, execution)
        self._total.incoming.add(now, incoming)
        self._total.outgoing.add(now, outgoing)
        return Delivered(incoming, outgoing, deliveries)
