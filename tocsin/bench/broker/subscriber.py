"""A subscriber as a script of the crowd: it logs in, subscribes, and from then on only listens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tocsin.bench.broker import websocket
from tocsin.bench.broker.sockets import Script
from tocsin.errors import UnavailableError

Parameters = dict[str, Any]


def subscriber(url: str, token: str, channel: str, wanted: Sequence[Parameters]) -> Script:
    """Opens a connection and subscribes to a channel with all these parameters."""
    host, _, path = url.removeprefix("ws://").partition("/")
    buffer = yield websocket.upgrade(f"/{path}", host)
    while not websocket.take_upgrade(buffer):
        yield b""
    yield websocket.text({"type": "login", "token": token})
    yield from _answers(buffer, "welcome", 1)
    yield b"".join(
        websocket.text({"type": "subscribe", "id": id, "channel": channel, "parameters": parameters})
        for id, parameters in enumerate(wanted)
    )
    yield from _answers(buffer, "subscribed", len(wanted))


def _answers(buffer: bytearray, kind: str, count: int) -> Script:
    """Waits for so many answers."""
    while True:
        for payload in websocket.payloads(buffer):
            message = msgspec.json.decode(payload)
            if message["type"] != kind:
                raise UnavailableError(f"expected {kind}, got {message}")
            count -= 1
        if not count:
            return
        yield b""
