"""Values from outside in sentences: as JSON text, short, and safe to send whatever they hold."""

from __future__ import annotations

import json
from typing import Final

_LONGEST_SHOWN: Final = 60


def quote_value(value: object) -> str:
    """``value`` as JSON text for a message, shortened, and safe to send whatever it holds."""
    if isinstance(value, str):
        value = value[: _LONGEST_SHOWN + 1]
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        text = f"a value of type {type(value).__name__}"
    return shorten(text)


def shorten(text: str) -> str:
    """The beginning of ``text``, with what cannot be encoded escaped."""
    safe = text.encode("utf-8", "backslashreplace").decode()
    return safe if len(safe) <= _LONGEST_SHOWN else safe[: _LONGEST_SHOWN - 1] + "…"
