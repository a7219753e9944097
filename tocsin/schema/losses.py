"""Text in which decoding may lose digits: times finer than microseconds, and whole numbers too long for their type.

msgspec rounds both without a word. Looking for them in each value would double what decoding costs, so the text of a
whole request is looked through first, which costs little; only where something is found are records looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from tocsin.schema.types import ColumnType, Kind

Look = Callable[[bytes], bool]

_AS_ZEROS: Final = bytes(ord("0") if chr(byte).isdecimal() else byte for byte in range(256))
# Nobody has a reason to escape a digit, a point or a colon, so whoever does is looked at, too.
_FRACTION: Final = re.compile(rb"\.\d{7,}[Zz+-]")
_ESCAPE: Final = re.compile(rb"\\u00(?:3[0-9aA]|2[eE])")
# The shortest whole numbers that a FLOAT or a DOUBLE may not hold.
_DIGITS: Final = {Kind.FLOAT: 8, Kind.DOUBLE: 16}


def lossy(columns: Iterable[tuple[str, ColumnType]]) -> Look | None:
    """What tells whether text may hold such a value of these columns; None when there cannot be one."""
    kinds = {kind for _, type_ in columns for kind in _kinds(type_)}
    looks = [_whole_numbers(digits) for kind, digits in _DIGITS.items() if kind in kinds]
    if Kind.TIMESTAMP in kinds:
        looks.append(_times)
    return (lambda text: any(look(text) for look in looks)) if looks else None


def _times(text: bytes) -> bool:
    return bool(_FRACTION.search(text) or _ESCAPE.search(text))


def _whole_numbers(digits: int) -> Look:
    run = b"0" * digits
    number = re.compile(rb"[\s:,\[]-?\d{%d,}\s*[,\]}]" % digits)

    def look(text: bytes) -> bool:
        # Long runs of digits are rare, and found at once where all digits look the same.
        return run in text.translate(_AS_ZEROS) and bool(number.search(text))

    return look


def _kinds(type_: ColumnType) -> Iterator[Kind]:
    yield type_.kind
    for inner in [type_.element] if type_.element else [field.type for field in type_.fields]:
        yield from _kinds(inner)
