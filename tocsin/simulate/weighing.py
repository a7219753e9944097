"""What notifications weigh, found out from the wire."""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.model.messages import Result
from tocsin.model.subscriber import Answer, Note, Notes
from tocsin.model.weight import weight

_FRAME: Final[msgspec.json.Decoder[Answer]] = msgspec.json.Decoder(Answer)


def notes(frame: bytes) -> list[Note]:
    """The notifications of a frame."""
    message = _FRAME.decode(frame)
    return message.notes if isinstance(message, Notes) else []


def note_size(note: Note | Result) -> int:
    """What a notification counts in loads."""
    return weight(len(bytes(note.payload)))
