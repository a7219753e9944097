"""The names people give to datasets, columns, feeds, channels and parameters, and help when they mistype one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_NAME = 128
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# Likeness costs the product of the lengths; nobody mistypes a name this long.
_LONGEST_COMPARED = 64


def fault(name: str) -> str | None:
    """What is wrong with ``name`` as a name, as the end of a sentence that begins with it; None when it may be used."""
    if name.startswith("_"):
        return "is reserved: names beginning with an underscore belong to Tocsin"
    if not _NAME.fullmatch(name):
        return "is not a name: names are letters A-Z, digits and underscores, beginning with a letter"
    if len(name) > LONGEST_NAME:
        return f"is too long: names have at most {LONGEST_NAME} characters"
    return None


def find_repeated(names: Iterable[str]) -> str | None:
    """The first name that occurs twice, letter case aside as in SQL; None when all differ."""
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            return name
        seen.add(name.casefold())
    return None


def suggestion(name: str, known: Iterable[str]) -> str:
    """``" (did you mean X?)"`` when one of ``known`` resembles ``name``, else nothing: append it to a message."""
    if len(name) > _LONGEST_COMPARED:
        return ""
    spelled = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(name.casefold(), spelled, n=1)
    return f" (did you mean {spelled[close[0]]}?)" if close else ""
