"""Who wants what on which link, and what is asked of each neighbour: the covering set of what all others want."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from tocsin.content.filter import Filter
from tocsin.content.poset import CoveringChange, Poset
from tocsin.content.values import Publication

OWN: Final = ""
"""In place of a link: what the broker wants itself, or for its subscribers."""


class Difference(NamedTuple):
    """What is asked for from now on, and what no more."""

    add: list[Filter]
    drop: list[Filter]


class _Ask:
    """What is asked of one neighbour: the covering set, kept as it changes, and what has changed since it was told."""

    def __init__(self) -> None:
        self._order = Poset()
        self._uses: Counter[Filter] = Counter()
        self.asked: dict[Filter, None] = {}
        self._added: dict[Filter, None] = {}
        self._dropped: dict[Filter, None] = {}

    def add(self, filters: Iterable[Filter]) -> None:
        for filter in filters:
            self._uses[filter] += 1
            self._note(self._order.insert(filter))

    def remove(self, filters: Iterable[Filter]) -> None:
        for filter in filters:
            self._uses[filter] -= 1
            if not self._uses[filter]:
                del self._uses[filter]
                self._note(self._order.remove(filter))

    def settle(self) -> Difference:
        """What has changed since the last time."""
        change = Difference(list(self._added), list(self._dropped))
        self._added, self._dropped = {}, {}
        return change

    def _note(self, change: CoveringChange) -> None:
        for filter in change.left:
            del self.asked[filter]
            _move(filter, self._added, self._dropped)
        for filter in change.entered:
            self.asked[filter] = None
            _move(filter, self._dropped, self._added)


def _move(filter: Filter, undone: dict[Filter, None], done: dict[Filter, None]) -> None:
    """Takes back what was done to a filter, or does the opposite if nothing was."""
    if filter in undone:
        del undone[filter]
    else:
        done[filter] = None


class Interests:
    """Filters by link, and what follows from them for every neighbour.

    A filter that is wanted twice, dropped without having been wanted, or of a link that is not there, changes nothing.
    """

    def __init__(self) -> None:
        self._wanted: dict[str, Poset] = {OWN: Poset()}
        self._asks: dict[str, _Ask] = {}

    @property
    def own(self) -> Poset:
        """What the broker wants itself; only to be looked at."""
        return self._wanted[OWN]

    def wanted(self, link: str) -> Poset:
        """What a link wants; only to be looked at."""
        return self._wanted[link]

    def asked(self, link: str) -> list[Filter]:
        """What is asked of a neighbour at present."""
        return list(self._asks[link].asked)

    def open(self, link: str) -> list[Filter]:
        """There is one more neighbour; what is to be asked of it. It wants nothing yet."""
        ask = self._asks[link] = _Ask()
        for wanted in self._wanted.values():
            ask.add(wanted)
        self._wanted[link] = Poset()
        return ask.settle().add

    def close(self, link: str) -> dict[str, Difference]:
        """A neighbour is gone; what is to be asked of the others."""
        if link not in self._wanted:
            return {}
        changes = self.want(link, [], list(self._wanted[link]))
        del self._wanted[link], self._asks[link]
        return changes

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
        return self._settle(link, more, less)

    def route(self, content: Publication, sender: str) -> list[str]:
        """The links, and perhaps OWN, that want a publication, but for the one it came from."""
        return [link for link, wanted in self._wanted.items() if link != sender and wanted.matches_any(content)]

    def _settle(self, link: str, more: list[Filter], less: list[Filter]) -> dict[str, Difference]:
        changes = {}
        for neighbour, ask in self._asks.items():
            if neighbour == link:
                continue
            ask.add(more)
            ask.remove(less)
            change = ask.settle()
            if change.add or change.drop:
                changes[neighbour] = change
        return changes
