"""How large and how deep may be what one person sends and others have to carry."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

import msgspec

from tocsin.errors import InvalidError

PARAMETER_BYTES: Final = 4096
"""A subscription's parameters as JSON text have no more, unless a setting says otherwise: they are held by brokers and
the coordinator, and travel whenever a subscriber does."""
DEPTH: Final = 100
"""Arrays and objects in a record are nested no deeper: readers of JSON give up somewhere, and a record travels together
with those of others."""

# Always matches from a quotation mark on, also where the text ends within the string: so it is linear in any text.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def check_parameters(values: object, most: int) -> None:
    """Raises InvalidError when a subscription's parameters are too large, or nested too deeply to be written."""
    try:
        text = msgspec.json.encode(values)
    except RecursionError:
        text = b"[" * (DEPTH + 1)
    if too_deep(text):
        raise InvalidError("the parameters are nested too deeply; each is a plain value")
    if len(text) > most:
        raise InvalidError(f"the parameters have {len(text):,} bytes as JSON; at most {most:,} are taken")


def too_deep(text: bytes) -> bool:
    """Whether JSON text is nested more deeply than allowed; of what is not JSON it may say either."""
    if text.count(b"[") + text.count(b"{") <= DEPTH:
        return False
    brackets = _STRING.sub(b"", text).translate(None, _NOT_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > DEPTH
