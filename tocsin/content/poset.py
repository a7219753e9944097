"""Filters ordered by covering, after Carzaniga, Rosenblum and Wolf: the more general ones above.

Each filter is there once, below the least general ones that cover it. The covering subscription set (CSS), the filters
that no other one covers, is what lies right below the imaginary root, and so is always at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tocsin.content.filter import Filter
from tocsin.content.values import Value
from tocsin.errors import NotFoundError

_FEW: Final = 16

Point = tuple[str, type, Value]
"""An attribute and the one value that is asked of it; with its type, since ``True == 1``."""


class _Node:
    """A filter, with those right above and right below it. Dictionaries serve as sets that keep their order.

    ``key`` is the point of the filter that the fewest others shared when it came; None if it has none.
    """

    __slots__ = ("children", "filter", "key", "parents", "points")

    def __init__(self, filter: Filter, points: list[Point], key: Point | None) -> None:
        self.filter, self.points, self.key = filter, points, key
        self.parents: dict[_Node, None] = {}
        self.children = _Siblings()


class _Siblings:
    """The nodes right below one node; once they are many, also by their keys."""

    __slots__ = ("_by_key", "_nodes")

    def __init__(self) -> None:
        self._nodes: dict[_Node, None] = {}
        self._by_key: dict[Point | None, dict[_Node, None]] = {}

    def __iter__(self) -> Iterator[_Node]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, node: _Node) -> None:
        """One more."""
        self._nodes[node] = None
        if len(self._nodes) > _FEW:
            for each in (node,) if self._by_key else self._nodes:
                self._by_key.setdefault(each.key, {})[each] = None

    def remove(self, node: _Node) -> None:
        """One less."""
        del self._nodes[node]
        if self._by_key:
            del self._by_key[node.key][node]
            if not self._by_key[node.key]:
                del self._by_key[node.key]

    def perhaps_covering(self, points: Iterable[Point]) -> Iterator[_Node]:
        """All that cover a filter with these points, and some more: who asks for a value covers only who does, too."""
        if not self._by_key:
            return iter(self._nodes)
        return (node for key in (None, *points) for node in self._by_key.get(key, ()))


class Poset:
    """Filters in the order of covering, each of them once.

    What can go wrong: a filter that is not there is removed or asked about (:class:`NotFoundError`).
    """

    def __init__(self) -> None:
        self._root = _Node(Filter(), [], None)
        self._nodes: dict[Filter, _Node] = {}
        self._by_point: dict[Point, dict[_Node, None]] = {}

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
        return any(node.filter.covers(filter) for node in self._root.children.perhaps_covering(_points(filter)))

    def parents(self, filter: Filter) -> list[Filter]:
        """The least general ones that cover a filter of these; none, if it is in the CSS."""
        return [node.filter for node in self._node(filter).parents if node is not self._root]

    def children(self, filter: Filter) -> list[Filter]:
        """The most general ones that a filter of these covers."""
        return [node.filter for node in self._node(filter).children]

    def insert(self, filter: Filter) -> None:
        """Puts a filter in its place; nothing changes when it is there already."""
        if filter in self._nodes:
            return
        node = self._new(filter)
        parents = self._least_covering(node)
        for child in self._most_covered(node, parents):
            for parent in parents:
                if parent in child.parents:
                    _part(parent, child)
            _join(node, child)
        for parent in parents:
            _join(parent, node)
        self._enter(node)

    def remove(self, filter: Filter) -> None:
        """Takes a filter out; those below it come to lie below those above it."""
        node = self._node(filter)
        self._leave(node)
        parents, children = list(node.parents), list(node.children)
        for parent in parents:
            _part(parent, node)
        for child in children:
            _part(node, child)
            for parent in parents:
                if not any(parent.filter.covers(other.filter) for other in child.parents):
                    _join(parent, child)

    def _node(self, filter: Filter) -> _Node:
        if filter not in self._nodes:
            raise NotFoundError(f"nobody subscribes to '{filter}' here")
        return self._nodes[filter]

    def _new(self, filter: Filter) -> _Node:
        points = _points(filter)
        return _Node(filter, points, min(points, key=lambda point: len(self._by_point.get(point, ())), default=None))

    def _enter(self, node: _Node) -> None:
        self._nodes[node.filter] = node
        for point in node.points:
            self._by_point.setdefault(point, {})[node] = None

    def _leave(self, node: _Node) -> None:
        del self._nodes[node.filter]
        for point in node.points:
            del self._by_point[point][node]
            if not self._by_point[point]:
                del self._by_point[point]

    def _least_covering(self, node: _Node) -> list[_Node]:
        """Its parents to be. Below a filter that does not cover it, none does."""
        covering: dict[_Node, None] = {self._root: None}
        waiting = [self._root]
        while waiting:
            for each in waiting.pop().children.perhaps_covering(node.points):
                if each not in covering and each.filter.covers(node.filter):
                    covering[each] = None
                    waiting.append(each)
        general = {parent for each in covering for parent in each.parents}
        return [each for each in covering if each not in general]

    def _most_covered(self, node: _Node, parents: list[_Node]) -> list[_Node]:
        """Its children to be, none of which has a parent that it covers."""
        covered = [each for each in self._perhaps_covered(node, parents) if node.filter.covers(each.filter)]
        return [each for each in covered if not any(node.filter.covers(parent.filter) for parent in each.parents)]

    def _perhaps_covered(self, node: _Node, parents: list[_Node]) -> Iterable[_Node]:
        """The children to be, and some more. What it covers lies below each of its parents, and asks for its points."""
        narrowest = min(parents, key=lambda parent: len(parent.children))
        if node.key is not None and len(self._by_point.get(node.key, ())) <= len(narrowest.children):
            return self._by_point.get(node.key, ())
        return _meeting(node.filter, narrowest)


def _meeting(filter: Filter, top: _Node) -> Iterator[_Node]:
    """Those below a node that may be covered by a filter, without what lies below those that are."""
    seen, waiting = {top}, [top]
    while waiting:
        for node in waiting.pop().children:
            if node in seen:
                continue
            seen.add(node)
            yield node
            if filter.meets(node.filter) and not filter.covers(node.filter):
                waiting.append(node)


def _points(filter: Filter) -> list[Point]:
    return [(name, type(value), value) for name, value in filter.points()]


def _join(parent: _Node, child: _Node) -> None:
    parent.children.add(child)
    child.parents[parent] = None


def _part(parent: _Node, child: _Node) -> None:
    parent.children.remove(child)
    del child.parents[parent]
