"""Messages as text, and back. What a broker sends is read with suspicion: it may be anything."""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.errors import InvalidError
from tocsin.model.subscriber import Answer
from tocsin.schema.refusals import UNDECODABLE

_DECODER: Final[msgspec.json.Decoder[Answer]] = msgspec.json.Decoder(Answer)
encode: Final = msgspec.json.Encoder().encode


def decode(text: str | bytes) -> Answer:
    """Reads a broker's message. Raises InvalidError when it is none, or has numbers that cannot be."""
    try:
        return _DECODER.decode(text)
    except (*UNDECODABLE, ValueError) as error:
        raise InvalidError(f"the broker sent what is no message: {error}") from None
