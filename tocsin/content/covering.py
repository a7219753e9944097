"""The covering subscription set (CSS) of filters that come and go, many at a time.

Whoever only has to know which filters no other one covers need not know the whole order, as :class:`Poset` does: of a
filter that is covered it is enough to know one that covers it, its *keeper*. So what is kept grows with the number of
filters only, and filters that come together are looked at together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate, groupby
from typing import Final, TypeVar

from tocsin.content.engine import Engine
from tocsin.content.filter import AT_ONCE, Filter, Trait
from tocsin.content.poset import CoveringChange

# Comparing two filters takes about a twentieth of the time that it takes to look one up among many.
_COMPARISONS: Final = 20

T = TypeVar("T")
Slice = Callable[[], list[Filter]]
"""Some of the work: gives the filters that have gone out of the CSS by it."""


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

    What is added twice, or dropped without being there, changes nothing. What takes long is done in slices, each of so
    many alternatives of filters ``at_once``.
    """

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._clear()

    def _clear(self) -> None:
        self._filters: dict[Filter, _Kept] = {}
        # Those of the CSS, and what each of them is found by.
        self._top: dict[Filter, None] = {}
        self._engine, self._last = Engine(), 0
        self._numbered: dict[int, Filter] = {}
        self._by_trait: dict[Trait, dict[Filter, None]] = {}
        # Those that are to go when what they cover has found others.
        self._leaving: dict[Filter, None] = {}

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
        entered, left = self._change(add, dict.fromkeys(drop))
        # What comes together is looked at together, so that none of it covers another.
        covered = self.cover(entered) if len(entered) < len(self._top) else []
        return CoveringChange(entered, left + covered)

    def extend(self, add: Iterable[Filter], drop: Iterable[Filter]) -> CoveringChange:
        """The same, a little at a time.

        What those cover that have come in stays where it is until :meth:`cover` is called for them: so whoever comes
        and goes again, and covers much, has not much looked at. Whoever goes and covers much does so by and by, with
        calls of :meth:`leave_on`, as long as somebody :attr:`is_leaving`.
        """
        dropped = dict.fromkeys(drop)
        if self._filters.keys() <= dropped.keys():
            return self._change(add, dropped)
        late = [filter for filter in dropped if self._covers_much(filter)]
        entered, left = self._change(add, {filter: None for filter in dropped if filter not in late})
        # By now some of what they cover may be gone, too.
        slow = dict.fromkeys(filter for filter in late if self._covers_much(filter))
        self._leaving.update(slow)
        others = self._change([], {filter: None for filter in late if filter not in slow})
        return CoveringChange(entered + others.entered, left + others.left)

    @property
    def is_leaving(self) -> bool:
        """Whether some filter is to go that covers much."""
        return bool(self._leaving)

    def leave_on(self) -> CoveringChange:
        """Some of what is covered by a filter that is to go finds another one that covers it, or comes into the CSS."""
        filter = next(iter(self._leaving))
        kept = self._filters[filter]
        some = _first(kept.wards, self._at_once) if kept.keeper is None else []
        for ward in some:
            del kept.wards[ward]
            self._filters[ward].keeper = None
        entered = self._place(some, kept.number)
        if kept.keeper is None and kept.wards:
            return CoveringChange(entered, [])
        del self._leaving[filter]
        return CoveringChange(entered, self._change([], {filter: None}).left)

    def _covers_much(self, filter: Filter) -> bool:
        if filter not in self._top:
            return False
        return any(
            boxes > self._at_once for boxes in accumulate(each.alternatives for each in self._filters[filter].wards)
        )

    def _change(self, add: Iterable[Filter], drop: dict[Filter, None]) -> CoveringChange:
        going = [filter for filter in drop if filter in self._filters]
        left = [filter for filter in going if filter in self._top]
        coming: dict[Filter, None] = {}
        if len(going) == len(self._filters):
            self._clear()
        else:
            for filter in going:
                self._remove(filter, coming)
        for filter in dict.fromkeys(add):
            self._leaving.pop(filter, None)
            if filter not in self._filters and filter not in drop:
                self._filters[filter] = _Kept()
                coming[filter] = None
        return CoveringChange(self._place(coming), left)

    def cover(self, filters: Iterable[Filter]) -> list[Filter]:
        """What these cover goes out of the CSS, and is returned. Those that are not in the CSS count for nothing."""
        return [covered for each in self.cover_in_slices(filters) for covered in each()]

    def cover_in_slices(self, filters: Iterable[Filter]) -> list[Slice]:
        """The same, to be done one after the other, for whoever has something else to do in between. Filters may come
        and go meanwhile: what comes is looked at as it does."""
        covering = {filter: None for filter in filters if filter in self._top}
        compared = [(filter, len(self._perhaps_covered(filter))) for filter in covering]
        if sum(count for _, count in compared) <= _COMPARISONS * len(self._top):
            return [partial(self._compare, some) for some in _split(compared, _COMPARISONS * self._at_once)]
        looked_up = [(filter, filter.alternatives) for filter in self._top]
        return [partial(self._look_up, some, covering) for some in _split(looked_up, self._at_once)]

    def _remove(self, filter: Filter, orphans: dict[Filter, None]) -> None:
        """Its wards get its keeper; if it has none, they have to find another, or come into the CSS."""
        kept = self._filters.pop(filter)
        orphans.pop(filter, None)
        self._leaving.pop(filter, None)
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

    def _place(self, coming: Iterable[Filter], *but: int) -> list[Filter]:
        """Finds a keeper for each of these, other than certain ones; those that have none come into the CSS."""
        entered: list[Filter] = []
        # What covers another asks for no more attributes: so what is covered finds its keeper, and need not come in.
        for _, group in groupby(sorted(coming, key=_attributes), key=_attributes):
            entered += self._place_together(group, *but)
        return entered

    def _place_together(self, coming: Iterable[Filter], *but: int) -> list[Filter]:
        """Those of them that are covered neither by what is there nor by each other."""
        coming = [filter for filter in coming if not self._is_kept(filter, *but)]
        for filter in coming:
            self._enter(filter)
        if len(coming) > 1:
            for filter in coming:
                self._is_kept(filter, self._filters[filter].number, *but)
        for filter in coming:
            if self._filters[filter].keeper is not None:
                self._leave(filter, self._filters[filter])
        return [filter for filter in coming if self._filters[filter].keeper is None]

    def _is_kept(self, filter: Filter, *but: int) -> bool:
        """Whether a filter has found a keeper in the engine, other than certain ones."""
        keeper = self._engine.coverer(filter, *but)
        if keeper is None:
            return False
        self._keep(filter, self._numbered[keeper])
        return True

    def _compare(self, covering: list[Filter]) -> list[Filter]:
        """Finds what these cover, by comparing them with all that they may."""
        covered: list[Filter] = []
        for filter in covering:
            for other in self._perhaps_covered(filter) if filter in self._top else ():
                if other is not filter and self._filters[other].keeper is None and filter.covers(other):
                    self._keep(other, filter)
                    covered.append(other)
        return self._leave_all(covered)

    def _look_up(self, filters: list[Filter], covering: dict[Filter, None]) -> list[Filter]:
        """Finds which of these are covered, by looking up what covers each."""
        return self._leave_all([each for each in filters if each in self._top and self._is_kept_by(each, covering)])

    def _leave_all(self, covered: list[Filter]) -> list[Filter]:
        for filter in covered:
            self._leave(filter, self._filters[filter])
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


def _first(filters: Iterable[Filter], most: int) -> list[Filter]:
    """The first ones with so many boxes, and one at least."""
    first: list[Filter] = []
    for filter in filters:
        most -= filter.alternatives
        if first and most < 0:
            break
        first.append(filter)
    return first


def _split(weighed: Iterable[tuple[T, int]], most: int) -> list[list[T]]:
    """In parts of so much weight, or of one each."""
    parts: list[list[T]] = []
    weight = most
    for each, weighs in weighed:
        weight += weighs
        if weight > most:
            parts.append([])
            weight = weighs
        parts[-1].append(each)
    return parts
