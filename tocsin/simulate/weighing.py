"""What notifications weigh on the wire, found out from the wire."""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.model.messages import Result
from tocsin.model.subscriber import Answer, Note, Notes

_FRAME: Final[msgspec.json.Decoder[Answer]] = msgspec.json.Decoder(Answer)
EMPTY: Final = len(b'{"s":,"e":,"payload":}')
"""A note's bytes beside its payload and its two numbers."""


def notes(frame: bytes) -> list[Note]:
    """The notifications of a frame."""
    message = _FRAME.decode(frame)
    return message.notes if isinstance(message, Notes) else []


def note_size(note: Note | Result) -> int:
    """A notification's bytes as they are sent."""
    s, e = (note.s, note.e) if isinstance(note, Note) else (note.be, note.execution)
    return len(b'{"s":%d,"e":%d,"payload":%b}' % (s, e, bytes(note.payload)))


def weight(be: int, execution: int, size: int) -> int:
    """The same of one whose payload has so many bytes."""
    return EMPTY + len(str(be)) + len(str(execution)) + size
