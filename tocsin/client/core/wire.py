"""Messages as text, and back. What a broker sends is read with suspicion: it may be anything."""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.errors import InvalidError
from tocsin.model.messages import LARGEST
from tocsin.model.subscriber import Answer, Gap, Held, Notes, Subscribed, Welcome
from tocsin.schema.refusals import UNDECODABLE

_DECODER: Final[msgspec.json.Decoder[Answer]] = msgspec.json.Decoder(Answer)
encode: Final = msgspec.json.Encoder().encode


def decode(text: str | bytes) -> Answer:
    """Reads a broker's message. Raises InvalidError when it is none, or has numbers that cannot be."""
    try:
        answer = _DECODER.decode(text)
    except (*UNDECODABLE, ValueError) as error:
        raise InvalidError(f"the broker sent what is no message: {error}") from None
    if not all(0 <= number <= LARGEST for number in _numbers(answer)):
        raise InvalidError("the broker sent a message with a number out of range")
    return answer


def _numbers(answer: Answer) -> list[int]:
    match answer:
        case Notes(notes):
            return [number for note in notes for number in (note.s, note.e)]
        case Welcome(subscriptions=subscriptions, newest=newest):
            return [*newest.values(), *(number for held in subscriptions for number in _of(held))]
        case Subscribed(held=held):
            return _of(held)
        case Gap(subscription, first, last):
            return [subscription, first, last]
    return []


def _of(held: Held) -> list[int]:
    return [held.subscription, held.cursor]
