"""Who wants what on which link, and what is asked of each neighbour: the covering set of what all others want."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from tocsin.content.covering import CoveringSet, Slice
from tocsin.content.filter import AT_ONCE, Filter
from tocsin.content.filterset import FilterSet
from tocsin.content.poset import Poset
from tocsin.content.values import Publication

OWN: Final = ""
"""In place of a link: what the broker wants itself, or for its subscribers."""


class Difference(NamedTuple):
    """What is asked for from now on, and what no more."""

    add: list[Filter]
    drop: list[Filter]


class _Ask:
    """What is asked of one neighbour: the covering set of what all others want, kept as it changes.

    If filters ``linger``, what is covered by one that has come lately is asked for, too.
    """

    def __init__(self, linger: bool, at_once: int) -> None:
        self._covering, self._linger = CoveringSet(at_once), linger
        self._uses: Counter[Filter] = Counter()
        # What came into the covering set since it was settled last, and before that, since it was the last time.
        self._new: dict[Filter, None] = {}
        self._newer: dict[Filter, None] = {}
        # What is to be done until the covering set is settled.
        self._slices: deque[Slice] = deque()

    @property
    def asked(self) -> list[Filter]:
        """What is asked at present."""
        return list(self._covering.covering_set())

    @property
    def is_settled(self) -> bool:
        """Whether nothing is asked for that something else covers."""
        return not self._new and not self._newer and not self.is_busy

    @property
    def is_busy(self) -> bool:
        """Whether there is more to be done at once."""
        return bool(self._slices) or self._covering.is_leaving

    def begin(self, filters: list[Filter]) -> list[Filter]:
        """Others want these so far; what is to be asked."""
        self._uses.update(filters)
        return self._covering.change(filters, []).entered

    def change(self, more: list[Filter], less: list[Filter]) -> Difference:
        """Somebody wants these as well, and those no more."""
        self._uses.update(more)
        self._uses.subtract(less)
        over = [filter for filter in less if not self._uses[filter]]
        for filter in over:
            del self._uses[filter]
        if not self._linger:
            return Difference(*self._covering.change(more, over))
        return self._changed(*self._covering.extend(more, over))

    def _changed(self, entered: list[Filter], left: list[Filter]) -> Difference:
        for filter in left:
            self._new.pop(filter, None)
            self._newer.pop(filter, None)
        self._newer.update(dict.fromkeys(entered))
        return Difference(entered, left)

    def settle(self) -> Difference:
        """What those cover that were there when this was called before is no more asked for."""
        self._slices.extend(self._covering.cover_in_slices(self._new))
        self._new, self._newer = self._newer, {}
        return self.go_on()

    def go_on(self) -> Difference:
        """Does some of what is to be done."""
        if self._covering.is_leaving:
            return self._changed(*self._covering.leave_on())
        return self._changed([], self._slices.popleft()() if self._slices else [])


class Interests:
    """Filters by link, and what follows from them for every neighbour.

    A filter that is wanted twice, dropped without having been wanted, or of a link that is not there, changes nothing.
    ``own`` is what the broker wants itself; only to be looked at.

    If filters ``linger``, neighbours go on to be asked for what has become covered, until :meth:`settle` was called
    twice. So somebody who subscribes to everything, again and again for a moment, has not all others asked for anew
    each time. What takes long then is done in slices, of so many alternatives of filters ``at_once``.
    """

    def __init__(self, linger: bool = False, at_once: int = AT_ONCE) -> None:
        self.own, self._linger, self._at_once = Poset(), linger, at_once
        self._wanted: dict[str, Poset | FilterSet] = {OWN: self.own}
        self._asks: dict[str, _Ask] = {}

    def filters_of(self, link: str) -> Poset | FilterSet:
        """What a link wants; only to be looked at."""
        return self._wanted[link]

    def asked_filters(self, link: str) -> list[Filter]:
        """What is asked of a neighbour at present."""
        return self._asks[link].asked if link in self._asks else []

    @property
    def is_settled(self) -> bool:
        """Whether of every neighbour just the covering set is asked for."""
        return all(ask.is_settled for ask in self._asks.values())

    def settle(self) -> dict[str, Difference]:
        """Time has passed: what has been covered since the last time but one is no more asked for."""
        return _without_empty({neighbour: ask.settle() for neighbour, ask in self._asks.items()})

    @property
    def is_busy(self) -> bool:
        """Whether a change has more to it than was done at once, so that a broker has time for others in between."""
        return any(ask.is_busy for ask in self._asks.values())

    def go_on(self) -> dict[str, Difference]:
        """Does some of that."""
        return _without_empty({neighbour: ask.go_on() for neighbour, ask in self._asks.items() if ask.is_busy})

    def open(self, link: str, gives: bool = True) -> list[Filter]:
        """There is one more neighbour, of which something is to be had if it ``gives``; what is to be asked of it. It
        wants nothing yet."""
        wanted, self._wanted[link] = list(self._wanted.values()), FilterSet()
        if not gives:
            return []
        ask = self._asks[link] = _Ask(self._linger, self._at_once)
        return ask.begin([filter for each in wanted for filter in each])

    def close(self, link: str) -> dict[str, Difference]:
        """A neighbour is gone; what is to be asked of the others."""
        if link not in self._wanted:
            return {}
        wanted = list(self._wanted.pop(link))
        self._asks.pop(link, None)
        return self._change([], wanted, link)

    def want(self, link: str, add: Iterable[Filter], drop: Iterable[Filter]) -> dict[str, Difference]:
        """Somebody wants something else; what is to be asked of neighbours, where that changes."""
        wanted = self._wanted.get(link)
        if wanted is None:
            return {}
        more = [filter for filter in dict.fromkeys(add) if filter not in wanted]
        less = [filter for filter in dict.fromkeys(drop) if filter in wanted]
        for filter in more:
            wanted.insert(filter)
        for filter in less:
            wanted.remove(filter)
        return self._change(more, less, link)

    def route(self, content: Publication, sender: str) -> list[str]:
        """The links, and perhaps OWN, that want a publication, but for the one it came from."""
        return [link for link, wanted in self._wanted.items() if link != sender and wanted.matches_any(content)]

    def _change(self, more: list[Filter], less: list[Filter], link: str) -> dict[str, Difference]:
        changes = {neighbour: ask.change(more, less) for neighbour, ask in self._asks.items() if neighbour != link}
        return _without_empty(changes)


def _without_empty(changes: dict[str, Difference]) -> dict[str, Difference]:
    return {neighbour: change for neighbour, change in changes.items() if change.add or change.drop}
