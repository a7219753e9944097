"""Mosquitto: MQTT 3.1.1 topics with QoS 0."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tocsin.bench.broker.sockets import Script

_TOPIC = b"alarms"
_CONNECTED = b"\x20\x02\x00\x00"
_SUBSCRIBED = b"\x90\x03\x00\x01\x00"


class Mosquitto:
    """mosquitto with one anonymous listener, which does not wait to fill packets."""

    name = "mosquitto"
    program = "mosquitto"

    def command(self, port: int, directory: Path) -> list[str]:
        file = directory / "mosquitto.conf"
        file.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n", encoding="ascii")
        return [self.program, "-c", str(file)]

    def subscriber(self, number: int) -> Script:
        buffer = yield _connect(number)
        while len(buffer) < len(_CONNECTED):
            yield b""
        yield _packet(0x82, b"\x00\x01" + _string(_TOPIC) + b"\x00")
        while len(buffer) < len(_CONNECTED + _SUBSCRIBED):
            yield b""

    def publisher(self) -> Script:
        buffer = yield _connect(0)
        while len(buffer) < len(_CONNECTED):
            yield b""

    def publication(self, payloads: Sequence[bytes]) -> bytes:
        return b"".join(_packet(0x30, _string(_TOPIC) + payload) for payload in payloads)

    def delivery(self, payloads: Sequence[bytes]) -> bytes:
        return self.publication(payloads)


def _connect(number: int) -> bytes:
    clean_session, keep_alive = b"\x02", b"\x00\x00"
    return _packet(0x10, _string(b"MQTT") + b"\x04" + clean_session + keep_alive + _string(b"bench-%d" % number))


def _string(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text


def _packet(kind: int, body: bytes) -> bytes:
    """A packet with its length in groups of seven bits."""
    head, left = bytearray([kind]), len(body)
    while left > 0x7F:
        head.append(left & 0x7F | 0x80)
        left >>= 7
    head.append(left)
    return bytes(head) + body
