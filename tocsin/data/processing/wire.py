"""What a function's process and whoever started it say to each other, over a socket: a kind, a number and some bytes.

An answer has the number of what it answers, as nobody knows what a function does to its process.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import Final, NamedTuple

READY: Final = b"R"
ASKED: Final = b"A"
GIVEN: Final = b"G"
REFUSED: Final = b"F"
_HEAD: Final = struct.Struct("<cQQ")
_PIECE: Final = 1 << 20


class Message(NamedTuple):
    """One thing said."""

    kind: bytes
    number: int
    content: bytes


def send(connection: socket.socket, message: Message, deadline: float | None = None) -> None:
    """Says something; TimeoutError when the other side has not taken it by then."""
    connection.settimeout(_seconds_left(deadline))
    connection.sendall(_HEAD.pack(message.kind, message.number, len(message.content)) + message.content)


def receive(connection: socket.socket, most: int, deadline: float | None = None) -> Message:
    """What is said next; TimeoutError when it has not come by then, EOFError when none of ``most`` bytes will come."""
    kind, number, length = _HEAD.unpack(_read(connection, _HEAD.size, deadline))
    if length > most:
        raise EOFError
    return Message(kind, number, bytes(_read(connection, length, deadline)))


def _read(connection: socket.socket, length: int, deadline: float | None) -> bytearray:
    content = bytearray()
    while len(content) < length:
        connection.settimeout(_seconds_left(deadline))
        piece = connection.recv(min(length - len(content), _PIECE))
        if not piece:
            raise EOFError
        content += piece
    return content


def _seconds_left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
