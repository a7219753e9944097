"""Filters without an order, each of them once: what matters is only whether one of them wants a publication."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.content.engine import Engine
from tocsin.content.filter import Filter
from tocsin.content.values import Publication


class FilterSet:
    """A set of filters. To add or remove one takes about as long whatever the others are."""

    def __init__(self) -> None:
        self._engine, self._last = Engine(), 0
        self._numbers: dict[Filter, int] = {}

    def __contains__(self, filter: Filter) -> bool:
        return filter in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Filter]:
        return iter(self._numbers)

    def insert(self, filter: Filter) -> None:
        """One more; nothing changes when it is there already."""
        if filter not in self._numbers:
            self._last += 1
            self._numbers[filter] = self._last
            self._engine.add(self._last, filter)

    def remove(self, filter: Filter) -> None:
        """One less, if it is there."""
        number = self._numbers.pop(filter, None)
        if number is not None:
            self._engine.remove(number)

    def matches_any(self, publication: Publication) -> bool:
        """Whether a checked publication fulfils any of them."""
        return self._engine.matches_any(publication)
