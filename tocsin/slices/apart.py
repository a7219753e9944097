"""Whose commits are stored by themselves, so that one which cannot be stored fails alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

_MOST_DOUBLINGS: Final = 10


class StoredApart:
    """Nodes whose commits are not stored together with others', until enough of them have been stored by themselves.

    Whoever had a commit in a store that failed is apart until one of its commits was stored. Whoever fails by itself
    again, though others' were stored since it did so before, is to blame: it stays apart for 2, 4, … 1,024 commits.

    What can go wrong: it is no node's fault, as the disk refuses. Then nothing is stored, nobody is blamed, and all
    are together again one commit each after it takes something.
    """

    def __init__(self) -> None:
        self._remaining: dict[str, int] = {}
        self._faults: Counter[str] = Counter()
        # Of those who have failed by themselves: whether somebody else's was stored since.
        self._others_stored: dict[str, bool] = {}

    def __contains__(self, node: str) -> bool:
        return node in self._remaining

    def failed(self, nodes: Collection[str]) -> None:
        """A store failed that had commits of several nodes, or several of one: nobody knows yet which was at fault."""
        for node in nodes:
            self._remaining.setdefault(node, 1)

    def failed_alone(self, node: str) -> bool:
        """A commit failed that was stored by itself; whether its node is to blame."""
        to_blame = self._others_stored.get(node, False)
        if to_blame:
            self._faults[node] = min(self._faults[node] + 1, _MOST_DOUBLINGS)
        self._others_stored[node] = False
        self._remaining[node] = 2 ** self._faults[node]
        return to_blame

    def stored(self, nodes: Collection[str]) -> None:
        """Commits of these are stored; one that was apart was by itself."""
        for failed in self._others_stored:
            self._others_stored[failed] |= any(node != failed for node in nodes)
        for node in nodes:
            if node in self._remaining:
                self._remaining[node] -= 1
                if not self._remaining[node]:
                    del self._remaining[node]
