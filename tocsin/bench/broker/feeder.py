"""A data cluster that finds what it is told to: it speaks the control socket, and there is no Spark behind it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from typing import Any, Final

import msgspec
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from tocsin.bench.broker.sockets import Sockets
from tocsin.model import control
from tocsin.model.messages import Result

CHANNEL: Final = "Alarms"
FIRST: Final = 1_000_000
"""Executions begin here, so that all numbers have the same length and so all frames of a kind the same size."""
BES: Final = 100_000
"""The BE subscription to the kind 0; the others follow it, and all have numbers of the same length."""
_CREATED: Final = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
_PIECE: Final = 1 << 20
_REQUEST: Final = msgspec.json.Decoder[control.Request](control.Request)


class Feeder:
    """Serves brokers from within a crowd's loop. ``payload`` makes what an execution finds for a BE subscription."""

    def __init__(self, sockets: Sockets, payload: Callable[[int, int], bytes]) -> None:
        self._sockets, self._payload = sockets, payload
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.execution = FIRST
        self._found: dict[int, frozenset[int]] = {}
        self._bes: set[int] = set()
        self._brokers: list[FeederConnection] = []
        sockets.listen(self._listener, self._accept)

    @property
    def bes(self) -> list[int]:
        """All BE subscriptions that were ever asked for."""
        return sorted(self._bes)

    def execute(self, bes: Collection[int]) -> int:
        """An execution that finds something for these; all brokers that hold some of them are told."""
        self.execution += 1
        found = self._found[self.execution] = frozenset(bes)
        for broker in list(self._brokers):
            if held := sorted(broker.attached & found):
                broker.send(control.Executed(CHANNEL, self.execution, held))
        return self.execution

    def answer(self, attached: set[int], request: control.Request) -> control.ControlMessage:
        """The answer to a broker that has attached these so far."""
        match request:
            case control.Attach(id, _, parameters):
                bes = [self._be(one) for one in parameters]
                attached.update(bes)
                return control.Attached(id, bes, self.execution, channel=CHANNEL, parameters=parameters)
            case control.Detach(id, bes):
                attached.difference_update(bes)
                return control.Detached(id, len(bes))
            case control.Pull(id, _, first, last, wanted):
                return control.Results(id, self._results(first, last, attached if wanted is None else set(wanted)))
            case control.Ping(id):
                return control.Pong(id)

    def gone(self, broker: FeederConnection) -> None:
        """A broker has hung up."""
        if broker in self._brokers:
            self._brokers.remove(broker)

    def _be(self, parameters: dict[str, Any]) -> int:
        be: int = BES + parameters["kind"]
        self._bes.add(be)
        return be

    def _results(self, first: int, last: int, wanted: set[int]) -> list[Result]:
        found = []
        for execution in range(first, min(last, self.execution) + 1):
            for be in sorted(self._found.get(execution, frozenset()) & wanted):
                payload = self._payload(be, execution)
                found.append(Result(execution, be, 1, len(payload), msgspec.Raw(payload)))
        return found

    def _accept(self, buffer: memoryview) -> int:  # noqa: ARG002
        one, _ = self._listener.accept()
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conversation = FeederConnection(self, self._sockets, one)
        self._brokers.append(conversation)
        return 0


class FeederConnection:
    """A broker's connection: first it registers by HTTP, on another one it upgrades to a WebSocket."""

    def __init__(self, feeder: Feeder, sockets: Sockets, one: socket.socket) -> None:
        self._feeder, self._sockets, self._socket = feeder, sockets, one
        self._protocol = ServerProtocol(max_size=None)
        self.attached: set[int] = set()
        sockets.listen(one, self._take)

    def send(self, message: control.ControlMessage) -> None:
        """Tells the broker."""
        self._protocol.send_text(msgspec.json.encode(message))
        self._flush()

    def _take(self, buffer: memoryview) -> int:  # noqa: ARG002
        try:
            data = self._socket.recv(_PIECE)
        except ConnectionResetError:
            data = b""
        if not data:
            self._end()
        elif data.startswith(b"POST /brokers"):
            self._socket.sendall(_CREATED)
        elif not data.startswith(b'{"name"'):  # the registration's body, which may come apart from its head
            self._protocol.receive_data(data)
            for event in self._protocol.events_received():
                self._act(event)
            self._flush()
        return 0

    def _act(self, event: object) -> None:
        if isinstance(event, Request):
            self._protocol.send_response(self._protocol.accept(event))
            self.send(control.Welcome("bench"))
        elif isinstance(event, Frame) and event.opcode is Opcode.TEXT:
            self.send(self._feeder.answer(self.attached, _REQUEST.decode(event.data)))

    def _flush(self) -> None:
        try:
            for data in self._protocol.data_to_send():
                self._socket.sendall(data)
        except OSError:
            self._end()

    def _end(self) -> None:
        """The broker has hung up; it dials again."""
        self._sockets.dismiss(self._socket)
        self._feeder.gone(self)
