"""NATS: core subjects, without JetStream."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tocsin.bench.broker.peers.peer import take_until
from tocsin.bench.broker.sockets import Script

_SUBJECT = b"alarms"
_CONNECT = b'CONNECT {"verbose":false,"pedantic":false,"echo":true}\r\n'


class Nats:
    """nats-server as it starts by default."""

    name = "NATS"
    program = "nats-server"

    def command(self, port: int, directory: Path) -> list[str]:
        return [self.program, "--addr", "127.0.0.1", "--port", str(port), "--log", str(directory / "nats.log")]

    def subscriber(self, number: int) -> Script:  # noqa: ARG002
        return _open_connection(b"SUB %b 1\r\n" % _SUBJECT)

    def publisher(self) -> Script:
        return _open_connection(b"")

    def publication(self, payloads: Sequence[bytes]) -> bytes:
        return b"".join(b"PUB %b %d\r\n%b\r\n" % (_SUBJECT, len(payload), payload) for payload in payloads)

    def delivery(self, payloads: Sequence[bytes]) -> bytes:
        return b"".join(b"MSG %b 1 %d\r\n%b\r\n" % (_SUBJECT, len(payload), payload) for payload in payloads)


def _open_connection(more: bytes) -> Script:
    """The server greets first, and sends its own first ping when the client has connected."""
    buffer = yield b""
    while not take_until(buffer, b"\r\n"):
        yield b""
    yield _CONNECT + more + b"PING\r\n"
    while not take_until(buffer, b"PONG\r\n"):
        yield b""
