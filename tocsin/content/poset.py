"""Filters ordered by covering, after Carzaniga, Rosenblum and Wolf: the more general ones above.

Each filter is there once, below the least general ones that cover it. The covering subscription set (CSS), the filters
that no other one covers, is what lies right below the imaginary root, and so is always at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tocsin.content.engine import Engine
from tocsin.content.filter import Filter, Trait
from tocsin.content.values import Publication
from tocsin.errors import NotFoundError


class CoveringChange(NamedTuple):
    """The filters that have come into the CSS, and those that have gone out of it."""

    entered: list[Filter]
    left: list[Filter]


class _Node:
    """A filter, with those right above and right below it. Dictionaries serve as sets that keep their order."""

    __slots__ = ("children", "filter", "number", "parents", "traits")

    def __init__(self, filter: Filter, number: int) -> None:
        self.filter, self.number = filter, number
        self.traits: list[Trait] = list(filter.traits())
        self.parents: dict[_Node, None] = {}
        self.children: dict[_Node, None] = {}


class Poset:
    """Filters in the order of covering, each of them once.

    What can go wrong: a filter that is not there is removed or asked about (:class:`NotFoundError`).
    """

    def __init__(self) -> None:
        self._root = _Node(Filter(), -1)
        self._engine, self._last = Engine(), 0
        self._nodes: dict[Filter, _Node] = {}
        self._numbered: dict[int, _Node] = {}
        self._by_trait: dict[Trait, dict[_Node, None]] = {}

    def __contains__(self, filter: Filter) -> bool:
        return filter in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Filter]:
        return iter(self._nodes)

    def covering_set(self) -> Iterator[Filter]:
        """The CSS: the filters that no other one covers."""
        return (node.filter for node in self._root.children)

    def is_covered(self, filter: Filter) -> bool:
        """Whether a filter is covered by one that is here: by another one, or by itself."""
        return len(self._engine.covering(filter)) > 0

    def matching(self, publication: Publication) -> list[Filter]:
        """The filters that a checked publication fulfils."""
        return self._engine.matching(publication)

    def matches_any(self, publication: Publication) -> bool:
        """Whether there are any."""
        return self._engine.matches_any(publication)

    def parents(self, filter: Filter) -> list[Filter]:
        """The least general ones that cover a filter of these; none, if it is in the CSS."""
        return [node.filter for node in self._node(filter).parents if node is not self._root]

    def children(self, filter: Filter) -> list[Filter]:
        """The most general ones that a filter of these covers."""
        return [node.filter for node in self._node(filter).children]

    def insert(self, filter: Filter) -> CoveringChange:
        """Puts a filter in its place; nothing changes when it is there already."""
        change = CoveringChange([], [])
        if filter in self._nodes:
            return change
        node = self._enter(filter)
        parents = self._least_covering(node)
        for child in self._most_covered(node, parents):
            for parent in parents:
                if parent in child.parents:
                    _part(parent, child)
                    if parent is self._root:
                        change.left.append(child.filter)
            _join(node, child)
        for parent in parents:
            _join(parent, node)
            if parent is self._root:
                change.entered.append(filter)
        return change

    def remove(self, filter: Filter) -> CoveringChange:
        """Takes a filter out; those below it come to lie below those above it."""
        node = self._node(filter)
        change = CoveringChange([], [filter] if self._root in node.parents else [])
        self._leave(node)
        parents, children = list(node.parents), list(node.children)
        for parent in parents:
            _part(parent, node)
        for child in children:
            _part(node, child)
        # Those above it cover none of each other: what else is above a child is all that may lie between.
        others = {other: None for child in children for other in child.parents}
        covered = {parent: {other for other in others if parent.filter.covers(other.filter)} for parent in parents}
        for child in children:
            between = list(child.parents)
            for parent in parents:
                if covered[parent].isdisjoint(between):
                    _join(parent, child)
                    if parent is self._root:
                        change.entered.append(child.filter)
        return change

    def _node(self, filter: Filter) -> _Node:
        if filter not in self._nodes:
            raise NotFoundError(f"nobody subscribes to '{filter}' here")
        return self._nodes[filter]

    def _enter(self, filter: Filter) -> _Node:
        self._last += 1
        node = self._nodes[filter] = self._numbered[self._last] = _Node(filter, self._last)
        self._engine.add(node.number, filter)
        for trait in node.traits:
            self._by_trait.setdefault(trait, {})[node] = None
        return node

    def _leave(self, node: _Node) -> None:
        del self._nodes[node.filter], self._numbered[node.number]
        self._engine.remove(node.number)
        for trait in node.traits:
            del self._by_trait[trait][node]
            if not self._by_trait[trait]:
                del self._by_trait[trait]

    def _least_covering(self, node: _Node) -> list[_Node]:
        """Its parents to be: of all that cover it, those that are above no other."""
        numbers = self._engine.covering(node.filter).tolist()
        covering = [self._numbered[number] for number in numbers if number != node.number]
        general = {parent for each in covering for parent in each.parents}
        return [each for each in covering if each not in general] or [self._root]

    def _most_covered(self, node: _Node, parents: list[_Node]) -> list[_Node]:
        """Its children to be, none of which has a parent that it covers."""
        covered = [each for each in self._perhaps_covered(node, parents) if node.filter.covers(each.filter)]
        return [each for each in covered if not any(node.filter.covers(parent.filter) for parent in each.parents)]

    def _perhaps_covered(self, node: _Node, parents: list[_Node]) -> Iterable[_Node]:
        """The children to be, and some more. What it covers lies below each of its parents, and has all its traits."""
        below = min(parents, key=lambda parent: len(parent.children))
        same: dict[_Node, None] | None = min((self._by_trait[trait] for trait in node.traits), key=len, default=None)
        if same is not None and len(same) <= len(below.children):
            return [each for each in same if each is not node]
        return _meeting(node.filter, below)


def _meeting(filter: Filter, top: _Node) -> Iterator[_Node]:
    """Those below a node that may be covered by a filter, without what lies below those that are."""
    seen, waiting = {top}, [top]
    while waiting:
        for node in waiting.pop().children:
            if node in seen:
                continue
            seen.add(node)
            yield node
            if node.children and filter.meets(node.filter) and not filter.covers(node.filter):
                waiting.append(node)


def _join(parent: _Node, child: _Node) -> None:
    parent.children[child] = None
    child.parents[parent] = None


def _part(parent: _Node, child: _Node) -> None:
    del parent.children[child]
    del child.parents[parent]
