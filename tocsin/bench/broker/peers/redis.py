"""Redis: SUBSCRIBE and PUBLISH, in RESP2."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tocsin.bench.broker.peers.peer import take_until
from tocsin.bench.broker.sockets import Script

_CHANNEL = b"alarms"


class Redis:
    """redis-server without persistence, one thread."""

    name = "Redis"
    program = "redis-server"

    def command(self, port: int, directory: Path) -> list[str]:
        options = {"port": port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "maxclients": 15_000}
        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        return [self.program, *words, "--dir", str(directory)]

    def subscriber(self, number: int) -> Script:  # noqa: ARG002
        buffer = yield _words(b"SUBSCRIBE", _CHANNEL)
        while not take_until(buffer, b":1\r\n"):
            yield b""

    def publisher(self) -> Script:
        buffer = yield _words(b"PING")
        while not take_until(buffer, b"+PONG\r\n"):
            yield b""

    def publication(self, payloads: Sequence[bytes]) -> bytes:
        return b"".join(_words(b"PUBLISH", _CHANNEL, payload) for payload in payloads)

    def delivery(self, payloads: Sequence[bytes]) -> bytes:
        return b"".join(_words(b"message", _CHANNEL, payload) for payload in payloads)


def _words(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
