"""Notifications as bytes: each is made once, and frames are made of them. Payloads are never parsed."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.model import weight as weights
from tocsin.model.messages import Result

_HEAD, _TAIL = b'{"type":"notes","notes":[', b"]}"
_PAYLOAD = b'"payload":'


def note(result: Result) -> bytes:
    """The bytes of one :class:`~tocsin.model.subscriber.Note`."""
    return b'{"s":%d,"e":%d,"payload":%b}' % (result.be, result.execution, bytes(result.payload))


def weight(note: bytes) -> int:
    """What a note counts in loads."""
    return weights.weight(len(note) - note.index(_PAYLOAD) - len(_PAYLOAD) - len(b"}"))


def join(notes: Iterable[bytes]) -> bytes:
    """The bytes of one :class:`~tocsin.model.subscriber.Notes`."""
    return _HEAD + b",".join(notes) + _TAIL
