"""What notifications weigh on the wire, found out from the wire."""

from __future__ import annotations

import msgspec

from tocsin.model.messages import Result
from tocsin.model.subscriber import Answer, Note, Notes

_FRAME: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


def notes(frame: bytes) -> list[Note]:
    """The notifications of a frame."""
    message = _FRAME.decode(frame)
    return message.notes if isinstance(message, Notes) else []


def note_size(note: Note | Result) -> int:
    """A notification's bytes as they are sent."""
    s, e = (note.s, note.e) if isinstance(note, Note) else (note.be, note.execution)
    return len(b'{"s":%d,"e":%d,"payload":%b}' % (s, e, bytes(note.payload)))
