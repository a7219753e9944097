"""WebSocket frames as a server sends them: whole and unmasked."""

from __future__ import annotations

from struct import pack
from typing import Final

PING: Final = b"\x89\x00"
_TEXT: Final = 0x81


def text(payload: bytes) -> bytes:
    """A text message."""
    size = len(payload)
    if size < 126:
        return pack("!BB", _TEXT, size) + payload
    if size < 1 << 16:
        return pack("!BBH", _TEXT, 126, size) + payload
    return pack("!BBQ", _TEXT, 127, size) + payload
