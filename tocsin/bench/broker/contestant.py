"""What takes part in the fan-out: a server with its subscribers, which delivers on demand and counts what arrives."""

from __future__ import annotations

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec
import psutil

from tocsin.bench.broker import websocket
from tocsin.bench.broker.feeder import CHANNEL, Feeder
from tocsin.bench.broker.network import TOKEN, network
from tocsin.bench.broker.payloads import payload
from tocsin.bench.broker.peers.peer import PeerServer
from tocsin.bench.broker.processes import free_port, listens, running, wait_until
from tocsin.bench.broker.registration import register
from tocsin.bench.broker.sockets import Sockets, converse, exactly
from tocsin.bench.broker.subscriber import subscriber
from tocsin.errors import UnavailableError
from tocsin.model.subscriber import Note, Notes

MOST: Final = 10
"""Notifications that one execution brings at most."""
_QUIET: Final = 2.5  # seconds; nats-server's first pings come two seconds after a connection is opened
Cores = tuple[set[int], set[int]]


class FanoutRound(msgspec.Struct):
    """How long a round took, and how much processor time it cost the clients and the server."""

    seconds: float
    client: float
    server: float


class FanoutContestant(ABC):
    """One server and its subscribers. What arrives is counted per subscriber, and must be exact.

    What can go wrong: the server does not start or is not installed, a subscriber gets something else than it should,
    nothing comes (all are told as errors, with what was seen).
    """

    name: str

    def __init__(self, subscribers: int) -> None:
        self._subscribers = subscribers
        self._stack, self._sockets = ExitStack(), Sockets()
        self._server: psutil.Process

    @abstractmethod
    def open(self, directory: Path, cores: Cores) -> None:
        """Starts the server and opens all connections."""

    @abstractmethod
    def publish(self, count: int) -> None:
        """Has ``count`` notifications delivered to everybody."""

    @abstractmethod
    def size(self, count: int) -> int:
        """How many bytes everybody gets by that."""

    @abstractmethod
    def right(self, count: int, got: bytes) -> bool:
        """Whether this is what a subscriber should have got by the last publication."""

    def close(self) -> None:
        """Ends everything."""
        self._sockets.close()
        self._stack.close()

    def rest(self, seconds: float) -> None:
        """Nothing is asked of it for a while, but its server may want an answer."""
        self._sockets.attend(seconds)

    def check(self, count: int) -> None:
        """One round in which everything is looked at."""
        self.publish(count)
        wrong = [
            got for got in self._sockets.collect(self._subscribers * self.size(count)) if not self.right(count, got)
        ]
        if wrong:
            raise UnavailableError(f"{self.name} delivered to {len(wrong)} not what was published: {wrong[0][:500]!r}")

    def round(self, count: int) -> FanoutRound:
        """Publishes once, and takes the time until the last one has everything."""
        size, server, client = self.size(count), _cpu(self._server), time.process_time()
        began = time.perf_counter()
        self.publish(count)
        counts = self._sockets.receive(self._subscribers * size)
        seconds = time.perf_counter() - began
        exactly(counts, size)
        return FanoutRound(seconds, time.process_time() - client, _cpu(self._server) - server)

    def reading(self, count: int, wait: float) -> float:
        """How long the clients need to read a round that has arrived after ``wait`` seconds: the least they need."""
        self.publish(count)
        self._sockets.attend(wait)
        began = time.perf_counter()
        self._sockets.receive(self._subscribers * self.size(count))
        return time.perf_counter() - began


class Other(FanoutContestant):
    """A peer."""

    def __init__(self, subscribers: int, peer: PeerServer) -> None:
        super().__init__(subscribers)
        self.name, self._peer = peer.name, peer
        self._number = 0
        self._publisher: socket.socket

    def open(self, directory: Path, cores: Cores) -> None:
        port, log = free_port(), directory / f"{self.name}.log"
        self._server = self._stack.enter_context(running(self._peer.command(port, directory), log, cores[0]))
        wait_until(lambda: listens(port), self._server, log, self.name)
        address = ("127.0.0.1", port)
        self._sockets.open(address, (self._peer.subscriber(number) for number in range(1, self._subscribers + 1)))
        self._publisher = converse(address, self._peer.publisher())
        self._sockets.listen(self._publisher, lambda buffer: self._publisher.recv_into(buffer) * 0)
        self._sockets.settle(_QUIET)

    def publish(self, count: int) -> None:
        self._number += 1
        self._publisher.sendall(self._peer.publication(self._payloads(count)))

    def size(self, count: int) -> int:
        return len(self._peer.delivery(self._payloads(count)))

    def right(self, count: int, got: bytes) -> bool:
        return got == self._peer.delivery(self._payloads(count))

    def _payloads(self, count: int) -> Sequence[bytes]:
        return [payload(one, self._number) for one in range(count)]


class Tocsin(FanoutContestant):
    """A broker of ours with a real coordinator; what its data cluster finds is scripted."""

    name = "Tocsin"

    def __init__(self, subscribers: int) -> None:
        super().__init__(subscribers)
        self._feeder = Feeder(self._sockets, payload)

    def open(self, directory: Path, cores: Cores) -> None:
        running_network = network(directory, self._feeder.url, ["bench"], cores, lambda: self._sockets.attend(0.05))
        net = self._stack.enter_context(running_network)
        self._server = net.brokers["bench"]
        places = register(self._sockets, net.coordinator, TOKEN, [f"s{number}" for number in range(self._subscribers)])
        wanted = [{"kind": kind} for kind in range(MOST)]
        scripts = (subscriber(place.url, place.token, CHANNEL, wanted) for place in places)
        self._sockets.open(websocket.address(places[0].url), scripts)
        self._sockets.settle(_QUIET)

    def publish(self, count: int) -> None:
        self._feeder.execute(self._feeder.bes[:count])

    def size(self, count: int) -> int:
        notes = [Note(be, self._feeder.execution, msgspec.Raw(payload(be, 0))) for be in self._feeder.bes[:count]]
        return len(websocket.encode_frame(msgspec.json.encode(Notes(notes))))

    def right(self, count: int, got: bytes) -> bool:
        buffer, execution = bytearray(got), self._feeder.execution
        [message] = [msgspec.json.decode(one, type=Notes) for one in websocket.payloads(buffer)]
        expected = [Note(be, execution, msgspec.Raw(payload(be, execution))) for be in self._feeder.bes[:count]]
        return not buffer and message.notes == expected


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
