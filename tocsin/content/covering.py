"""The covering subscription set (CSS) of filters that come and go, many at a time.

Whoever only has to know which filters no other one covers need not know the whole order, as :class:`Poset` does: of a
filter that is covered it is enough to know one that covers it, its *keeper*. So what is kept grows with the number of
filters only, and filters that come together are looked at together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from tocsin.content.engine import Engine
from tocsin.content.filter import Filter, Trait
from tocsin.content.poset import CoveringChange

# Comparing two filters takes about a twentieth of the time that it takes to look one up among many.
_COMPARISONS: Final = 20


class _Kept:
    """A filter's keeper, if it is covered, and those whose keeper it is."""

    __slots__ = ("keeper", "number", "wards")

    def __init__(self) -> None:
        self.keeper: Filter | None = None
        self.wards: dict[Filter, None] = {}
        # In the engine, for one of the CSS.
        self.number = 0


class CoveringSet:
    """Filters, each once, and which of them no other one covers.

    What is added twice, or dropped without being there, changes nothing.
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._filters: dict[Filter, _Kept] = {}
        # Those of the CSS, and what each of them is found by.
        self._top: dict[Filter, None] = {}
        self._engine, self._last = Engine(), 0
        self._numbered: dict[int, Filter] = {}
        self._by_trait: dict[Trait, dict[Filter, None]] = {}

    def __contains__(self, filter: Filter) -> bool:
        return filter in self._filters

    def __len__(self) -> int:
        return len(self._filters)

    def covering_set(self) -> Iterator[Filter]:
        """The CSS."""
        return iter(self._top)

    def change(self, add: Iterable[Filter], drop: Iterable[Filter]) -> CoveringChange:
        """Some filters come and others go; what has come into the CSS by all of that, and what has gone out of it.

        What is both added and dropped is not there afterwards.
        """
        entered, left = self.extend(add, drop)
        # What comes together is looked at together, so that none of it covers another.
        covered = self.cover(entered) if len(entered) < len(self._top) else []
        return CoveringChange(entered, left + covered)

    def extend(self, add: Iterable[Filter], drop: Iterable[Filter]) -> CoveringChange:
        """The same, only that what those cover that have come in stays where it is until :meth:`cover` is called for
        them: so whoever comes and goes again, and covers much, has not much looked at."""
        dropped = dict.fromkeys(drop)
        going = [filter for filter in dropped if filter in self._filters]
        left = [filter for filter in going if filter in self._top]
        coming: dict[Filter, None] = {}
        if len(going) == len(self._filters):
            self._clear()
        else:
            for filter in going:
                self._remove(filter, coming)
        for filter in dict.fromkeys(add):
            if filter not in self._filters and filter not in dropped:
                self._filters[filter] = _Kept()
                coming[filter] = None
        return CoveringChange(self._place(coming), left)

    def cover(self, filters: Iterable[Filter]) -> list[Filter]:
        """What these cover goes out of the CSS, and is returned. Those that are not in the CSS count for nothing."""
        covering = {filter: None for filter in filters if filter in self._top}
        covered = self._find_covered(covering)
        for filter in covered:
            self._leave(filter, self._filters[filter])
        return covered

    def _remove(self, filter: Filter, orphans: dict[Filter, None]) -> None:
        """Its wards get its keeper; if it has none, they have to find another, or come into the CSS."""
        kept = self._filters.pop(filter)
        orphans.pop(filter, None)
        if kept.keeper is not None:
            del self._filters[kept.keeper].wards[filter]
        elif filter in self._top:
            self._leave(filter, kept)
        for ward in kept.wards:
            self._filters[ward].keeper = None
            if kept.keeper is not None:
                self._keep(ward, kept.keeper)
            else:
                orphans[ward] = None

    def _place(self, coming: Iterable[Filter]) -> list[Filter]:
        """Finds a keeper for each of these; those that have none come into the CSS."""
        entered: list[Filter] = []
        # What covers another asks for no more attributes: so what is covered finds its keeper, and need not come in.
        for _, group in groupby(sorted(coming, key=_attributes), key=_attributes):
            entered += self._place_together(group)
        return entered

    def _place_together(self, coming: Iterable[Filter]) -> list[Filter]:
        """Those of them that are covered neither by what is there nor by each other."""
        coming = [filter for filter in coming if not self._is_kept(filter, 0)]
        for filter in coming:
            self._enter(filter)
        if len(coming) > 1:
            for filter in coming:
                self._is_kept(filter, self._filters[filter].number)
        for filter in coming:
            if self._filters[filter].keeper is not None:
                self._leave(filter, self._filters[filter])
        return [filter for filter in coming if self._filters[filter].keeper is None]

    def _is_kept(self, filter: Filter, number: int) -> bool:
        """Whether a filter, which may be in the engine itself, has found a keeper there."""
        keeper = self._engine.coverer(filter, number)
        if keeper is None:
            return False
        self._keep(filter, self._numbered[keeper])
        return True

    def _find_covered(self, covering: dict[Filter, None]) -> list[Filter]:
        """Finds those of the CSS that some of it cover."""
        compared = {filter: self._perhaps_covered(filter) for filter in covering}
        if sum(map(len, compared.values())) > _COMPARISONS * len(self._top):
            return [each for each in self._top if self._is_kept_by(each, covering)]
        covered: list[Filter] = []
        for filter, others in compared.items():
            for other in others:
                if other is not filter and self._filters[other].keeper is None and filter.covers(other):
                    self._keep(other, filter)
                    covered.append(other)
        return covered

    def _is_kept_by(self, filter: Filter, covering: dict[Filter, None]) -> bool:
        """Whether one of the CSS has found a keeper among some of it."""
        found = (self._numbered[number] for number in self._engine.covering(filter).tolist())
        keeper = next((each for each in found if each is not filter and each in covering), None)
        if keeper is not None:
            self._keep(filter, keeper)
        return keeper is not None

    def _perhaps_covered(self, filter: Filter) -> dict[Filter, None]:
        """Those of the CSS that have what it is rarest for a filter to have: what it covers has all of that."""
        return min((self._by_trait[trait] for trait in filter.traits()), key=len, default=self._top)

    def _keep(self, ward: Filter, keeper: Filter) -> None:
        self._filters[ward].keeper = keeper
        self._filters[keeper].wards[ward] = None

    def _enter(self, filter: Filter) -> None:
        self._last += 1
        self._filters[filter].number = self._last
        self._numbered[self._last], self._top[filter] = filter, None
        self._engine.add(self._last, filter)
        for trait in filter.traits():
            self._by_trait.setdefault(trait, {})[filter] = None

    def _leave(self, filter: Filter, kept: _Kept) -> None:
        del self._top[filter], self._numbered[kept.number]
        self._engine.remove(kept.number)
        for trait in filter.traits():
            del self._by_trait[trait][filter]
            if not self._by_trait[trait]:
                del self._by_trait[trait]


def _attributes(filter: Filter) -> int:
    return len(filter.constraints)
