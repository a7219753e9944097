"""Long messages cut into parts, so that none grows with the number of people, subscriptions or results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

PART_BYTES: Final = 256 << 10
"""Whoever takes messages at all takes one of this size."""

encoded: Final = msgspec.json.Encoder().encode


def parts(items: Iterable[T], size: Callable[[T], int], most: int = PART_BYTES) -> Iterator[list[T]]:
    """The items in order, in lists of about ``most`` bytes and at least one item."""
    part: list[T] = []
    total = 0
    for item in items:
        weight = size(item)
        if part and total + weight > most:
            yield part
            part, total = [], 0
        part.append(item)
        total += weight
    if part:
        yield part


def with_more(cut: Iterable[list[T]]) -> Iterator[tuple[list[T], bool]]:
    """Each part, and whether another one follows; an empty one when there is nothing."""
    waiting: list[T] = []
    begun = False
    for part in cut:
        if begun:
            yield waiting, True
        waiting, begun = part, True
    yield waiting, False


def size(value: object) -> int:
    """Its bytes as JSON."""
    return len(encoded(value))
