"""What the benchmark asks of a server it compares with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tocsin.bench.broker.sockets import Script


class PeerServer(Protocol):
    """A publish/subscribe server. Its protocol is spoken by hand, so that all are measured by the same few lines."""

    name: str
    program: str

    def command(self, port: int, directory: Path) -> list[str]:
        """Starts it on a port of this machine; it may write to the directory."""
        ...

    def subscriber(self, number: int) -> Script:
        """Opens a connection that gets everything published."""
        ...

    def publisher(self) -> Script:
        """Opens a connection that publishes."""
        ...

    def publication(self, payloads: Sequence[bytes]) -> bytes:
        """What the publisher sends at once."""
        ...

    def delivery(self, payloads: Sequence[bytes]) -> bytes:
        """What every subscriber gets then."""
        ...


def take_until(buffer: bytearray, end: bytes) -> bool:
    """Takes what came up to ``end`` from the buffer, if that has come."""
    at = buffer.find(end)
    if at < 0:
        return False
    del buffer[: at + len(end)]
    return True
