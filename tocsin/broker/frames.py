"""Notifications as bytes: each is made once, and equal sets of them share one frame. Payloads are never parsed."""

from __future__ import annotations

from tocsin.model.messages import Result

_HEAD, _TAIL = b'{"type":"notes","notes":[', b"]}"


def note(result: Result) -> bytes:
    """The bytes of one :class:`~tocsin.model.subscriber.Note`."""
    return b'{"s":%d,"e":%d,"payload":%b}' % (result.be, result.execution, bytes(result.payload))


class Frames:
    """Joins notes into frames; whoever asks for the same notes gets the same bytes, as long as this lives.

    Notes are told apart by identity, so they must outlive this object: make one per round of sending.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], bytes] = {}

    def join(self, notes: list[bytes]) -> bytes:
        """The bytes of one :class:`~tocsin.model.subscriber.Notes`."""
        key = tuple(map(id, notes))
        frame = self._made.get(key)
        if frame is None:
            frame = self._made[key] = _HEAD + b",".join(notes) + _TAIL
        return frame
