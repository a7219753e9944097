"""WebSocket as far as a subscriber needs it, by hand: a library's connection would cost more than what is measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

_UPGRADE: Final = (
    "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
# A mask of zeros leaves the text as it is; masks protect proxies from pages, and here there are neither.
_MASKED: Final = 0x80
_MASK: Final = bytes(4)


def upgrade(path: str, host: str) -> bytes:
    """Asks for a WebSocket."""
    return _UPGRADE.format(path=path, host=host).encode()


def take_upgrade(buffer: bytearray) -> bool:
    """Takes the answer from the buffer, if it is there."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return False
    if not buffer.startswith(b"HTTP/1.1 101"):
        raise ValueError(f"no WebSocket: {bytes(buffer[:400])!r}")
    del buffer[: end + 4]
    return True


def text(message: dict[str, Any]) -> bytes:
    """A message of a client."""
    return encode_frame(msgspec.json.encode(message), _MASKED, _MASK)


def encode_frame(payload: bytes, masked: int = 0, mask: bytes = b"") -> bytes:
    """A text frame; without a mask, as servers send it."""
    size = len(payload)
    if size < 126:
        head = bytes([0x81, masked | size])
    elif size < 1 << 16:
        head = bytes([0x81, masked | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([0x81, masked | 127]) + size.to_bytes(8, "big")
    return head + mask + payload


def payloads(buffer: bytearray) -> Iterator[bytes]:
    """Takes a server's whole text frames from the buffer; other frames are dropped."""
    while len(buffer) >= 2:
        size, start = buffer[1], 2
        if size >= 126:
            width = 2 if size == 126 else 8
            size, start = int.from_bytes(buffer[2 : 2 + width], "big"), 2 + width
        if len(buffer) < start + size:
            return
        kind, payload = buffer[0] & 0x0F, bytes(buffer[start : start + size])
        del buffer[: start + size]
        if kind == 1:
            yield payload


def address(url: str) -> tuple[str, int]:
    """The host and port of a WebSocket's URL."""
    host, _, port = url.removeprefix("ws://").partition("/")[0].partition(":")
    return host, int(port)
