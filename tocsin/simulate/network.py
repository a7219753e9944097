"""The network: connections between hosts, and what can become of them.

The cores are made for TCP: while a connection stands, what is sent on it arrives once and in order. So what networks do
to packets shows as this: loss as delay (it was sent again) or, when it goes on, as a broken connection; reordering only
between connections; duplication where somebody repeats a request after reconnecting. When a connection breaks, what was
under way on it is lost, and its two ends learn of it at different times: till then, one of them talks into the void.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Any, Final, Protocol

import msgspec

from tocsin.simulate.clock import VirtualClock

ABNORMAL: Final = 1006
_OPENED: Final = object()  # the answer that a connection is open
_encode = msgspec.json.Encoder(enc_hook=repr).encode


class Endpoint(Protocol):
    """Whoever is at one end of a connection."""

    def received(self, link: SimulatedConnection, message: Any) -> None:
        """A message has come."""

    def lost(self, link: SimulatedConnection, code: int) -> None:
        """The connection is over."""

    def flushed(self, link: SimulatedConnection) -> None:
        """Everything sent has arrived."""


Listener = Callable[["SimulatedConnection", str], Endpoint | None]
"""Takes a connection that is wanted for a purpose, or does not."""


@dataclass(frozen=True)
class Conditions:
    """How the network is. Times are seconds, on one way.

    Args:
        latency: the median; a message takes longer or less by a lognormal factor.
        spread: its sigma; with 0, everything takes the same time.
        bandwidth: bytes per second of a connection, in each direction.
        loss: the chance that a message has to be sent again.
        resend: what that costs.
        breaks: the chance that a message is the last of its connection.
        notice: until an end learns that its connection is broken, at most.
    """

    latency: float = 0.02
    spread: float = 0.5
    bandwidth: float = inf
    loss: float = 0.0
    resend: float = 0.2
    breaks: float = 0.0
    notice: float = 5.0

    @property
    def steady(self) -> bool:
        """Whether every message takes the same time, and none is lost."""
        return not (self.spread or self.loss or self.breaks) and self.bandwidth == inf


class SimulatedNetwork:
    """Hosts by name, and the connections between them. ``watch`` is told of each message, and on how many it goes."""

    def __init__(self, clock: VirtualClock, random: Random, conditions: Conditions | None = None) -> None:
        self.clock, self.random = clock, random
        self.conditions = conditions or Conditions()
        self._listeners: dict[str, Listener] = {}
        self._links: dict[str, dict[SimulatedConnection, None]] = {}
        self._cuts: dict[frozenset[str], int] = {}
        self._count = 0
        self.watch: Callable[[Any, int], None] | None = None

    def listen(self, host: str, listener: Listener) -> None:
        """A process on a host takes connections from now on."""
        self._listeners[host] = listener

    def dial(self, host: str, to: str, purpose: str, peer: Endpoint) -> SimulatedConnection:
        """Opens a connection. ``peer`` is told ``lost`` if that fails; it may send at once, and hears when it works by
        :attr:`SimulatedConnection.when_open`."""
        link = SimulatedConnection(self, (host, to), peer)
        self._links.setdefault(host, {})[link] = None
        if self.cut_between(host, to):
            self.clock.after(self.random.uniform(0.5, 1.0) * self.conditions.notice, link.fail)
        else:
            self.clock.after(self.delay(), self._arrive, link, to, purpose)
        return link

    def crash(self, host: str) -> None:
        """A process is gone; the others learn at once, or when they miss it."""
        self._listeners.pop(host, None)
        for link in list(self._links.get(host, {})):
            link.abandon(link.hosts.index(host))

    def links(self, host: str, other: str | None = None) -> list[SimulatedConnection]:
        """The connections of a host, or those between two."""
        return [link for link in self._links.get(host, {}) if other is None or other in link.hosts]

    def sever(self, host: str, other: str) -> None:
        """Nothing gets through between two hosts. Connections stall, and break if that lasts."""
        self._count += 1
        self._cuts[frozenset((host, other))] = self._count
        for link in self.links(host, other):
            for end in (0, 1):
                self.clock.after(self.random.uniform(0.2, 1.5) * self.conditions.notice, link.doubt, end, self._count)

    def mend(self, host: str, other: str) -> None:
        """Everything gets through again, also what stands waiting."""
        if self._cuts.pop(frozenset((host, other)), None):
            for link in self.links(host, other):
                link.resume()

    def mend_all(self) -> None:
        """Everything gets through everywhere."""
        for pair in list(self._cuts):
            host, other = sorted(pair)
            self.mend(host, other)

    def cut_between(self, host: str, other: str) -> int:
        """The number of the cut between two hosts, 0 without one."""
        return self._cuts.get(frozenset((host, other)), 0) if self._cuts else 0

    def delay(self) -> float:
        """How long the next message is under way, its length aside."""
        conditions = self.conditions
        if not conditions.spread:
            return conditions.latency
        seconds = conditions.latency * self.random.lognormvariate(0.0, conditions.spread)
        while conditions.loss and self.random.random() < conditions.loss:
            seconds += conditions.resend
        return seconds

    def send_each(self, links: Sequence[SimulatedConnection], end: int, message: Any) -> None:
        """Sends a message on each of these connections: at once, where everything takes the same time."""
        if self.conditions.steady:
            standing = [link for link in links if link.stands(end)]
            if self.watch:
                self.watch(message, len(standing))
            self.clock.after(self.conditions.latency, self._hand_over, standing, end, message)
            return
        for link in links:
            link.send(end, message)

    def _hand_over(self, links: Sequence[SimulatedConnection], end: int, message: Any) -> None:
        for link in links:
            link.hand_over(end, message)

    def forget(self, link: SimulatedConnection) -> None:
        """A connection is over at both ends."""
        for host in link.hosts:
            self._links.get(host, {}).pop(link, None)

    def _arrive(self, link: SimulatedConnection, to: str, purpose: str) -> None:
        listener = self._listeners.get(to)
        possible = listener and link.stands(0) and not self.cut_between(*link.hosts)
        peer = listener(link, purpose) if listener and possible else None
        if peer is None:
            self.clock.after(self.delay(), link.fail)
            return
        self._links.setdefault(to, {})[link] = None
        link.accept(peer)


class SimulatedConnection:
    """A connection: end 0 has opened it, end 1 has accepted it.

    An end that has closed, or knows that the connection is broken, hears no more of it.
    """

    __slots__ = (
        "_broken",
        "_free",
        "_last",
        "_network",
        "_open",
        "_peers",
        "_queues",
        "_stalled",
        "hosts",
        "when_open",
    )

    def __init__(self, network: SimulatedNetwork, hosts: tuple[str, str], peer: Endpoint) -> None:
        self.hosts = hosts
        self.when_open: Callable[[], None] | None = None
        self._network = network
        self._peers: list[Endpoint | None] = [peer, None]
        self._open = [True, False]
        self._broken = False
        self._queues: tuple[deque[Any], deque[Any]] = (deque(), deque())
        self._last, self._free = [0.0, 0.0], [0.0, 0.0]
        self._stalled = [False, False]

    def stands(self, end: int) -> bool:
        """Whether an end takes the connection for open."""
        return self._open[end]

    def is_idle(self, end: int) -> bool:
        """Whether nothing that an end has sent is under way."""
        return not self._queues[end]

    def accept(self, peer: Endpoint) -> None:
        """The other side has taken it."""
        self._peers[1], self._open[1] = peer, True
        self._send(1, _OPENED, 0)

    def fail(self) -> None:
        """It could not be opened, or is broken."""
        self._learn(0, ABNORMAL)
        self._over()

    def send(self, end: int, message: Any) -> None:
        """Sends a message; nobody says whether it arrives."""
        if not self._open[end]:
            return
        network = self._network
        conditions = network.conditions
        if network.watch:
            network.watch(message, 1)
        self._send(end, message, 0 if conditions.bandwidth == inf else _size(message))
        if conditions.breaks and network.random.random() < conditions.breaks:
            self.sever()

    def hand_over(self, end: int, message: Any) -> None:
        """Gives the other end what is not queued here, as it has been under way elsewhere."""
        if self._stalled[end] or self._network.cut_between(*self.hosts):
            self._queues[end].append(message)
            self._stalled[end] = True
            return
        peer = self._peers[1 - end]
        if peer and self._open[1 - end] and not self._broken:
            peer.received(self, message)
        sender = self._peers[end]
        if sender and self._open[end] and not self._queues[end]:
            sender.flushed(self)

    def close(self, end: int, code: int = 1000) -> None:
        """Ends it, after what was sent."""
        if self._open[end]:
            self._open[end] = False
            self._send(end, _Closing(code), 0)

    def sever(self) -> None:
        """It breaks; both ends learn, one of them perhaps late."""
        self._broken = True
        late = self._network.random.randrange(4)
        for end in (0, 1):
            seconds = self._network.conditions.notice if late == end else 0.1
            self._network.clock.after(self._network.random.random() * seconds, self._learn, end, ABNORMAL)

    def abandon(self, end: int) -> None:
        """The process at one end is gone."""
        self._broken, self._open[end] = True, False
        network = self._network
        late = network.conditions.notice if network.random.random() < 0.3 else network.delay()
        network.clock.after(late, self._learn, 1 - end, ABNORMAL)

    def doubt(self, end: int, cut: int) -> None:
        """An end gives up on a connection on which nothing moves since a cut, if that still lasts."""
        if self._network.cut_between(*self.hosts) == cut and self._open[end]:
            self._broken = True
            self._learn(end, ABNORMAL)

    def resume(self) -> None:
        """After a cut: what waits goes on, and whoever talks into the void is told."""
        for end in (0, 1):
            if self._broken:
                self._network.clock.after(self._network.delay(), self._learn, end, ABNORMAL)
            elif self._stalled[end]:
                self._stalled[end] = False
                for _ in self._queues[end]:
                    self._network.clock.after(self._network.conditions.latency, self._deliver, end)

    def _send(self, end: int, message: Any, size: int) -> None:
        network = self._network
        now = network.clock.now
        when = now + network.delay()
        if size:
            self._free[end] = max(self._free[end], now) + size / network.conditions.bandwidth
            when += self._free[end] - now
        # Nothing overtakes what was sent before.
        self._last[end] = when = max(when, self._last[end])
        self._queues[end].append(message)
        if not self._stalled[end]:
            network.clock.at(when, self._deliver, end)

    def _deliver(self, end: int) -> None:
        """The oldest message of one end arrives at the other."""
        queue = self._queues[end]
        if self._broken or self._stalled[end] or not queue:
            return
        if self._network.cut_between(*self.hosts):
            self._stalled[end] = True
            return
        message, other = queue.popleft(), 1 - end
        peer = self._peers[other]
        if self._open[other] and peer:
            if isinstance(message, _Closing):
                self._learn(other, message.code)
            elif message is _OPENED:
                if self.when_open:
                    self.when_open()
            else:
                peer.received(self, message)
        sender = self._peers[end]
        if not queue and self._open[end] and sender:
            sender.flushed(self)

    def _learn(self, end: int, code: int) -> None:
        peer = self._peers[end]
        if self._open[end]:
            self._open[end] = False
            if peer:
                peer.lost(self, code)
        if not any(self._open):
            self._over()

    def _over(self) -> None:
        """Nobody hears of it any more. Its ends may know it, and are let go: nothing collects circles meanwhile."""
        self._network.forget(self)
        self._peers, self.when_open = [None, None], None


@dataclass(frozen=True)
class _Closing:
    code: int


def _size(message: Any) -> int:
    return len(message if isinstance(message, bytes) else _encode(message))
