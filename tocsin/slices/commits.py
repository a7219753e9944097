"""Which commits count: those that begin exactly at their slices' markers and come from the owners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.slices.actions import StoreCommits
from tocsin.slices.apart import StoredApart
from tocsin.slices.messages import Commit, SlicePart
from tocsin.slices.ownership import Ownership


@dataclass(frozen=True)
class OfferedCommit:
    """A commit, and on whose connection it came."""

    node: str
    connection: int
    commit: Commit


class CommitQueue:
    """Commits on their way into the dataset. What waits while one is stored is stored together, as the next.

    What can go wrong: a commit comes twice, late, or from somebody who is no longer the owner: it does not begin at the
    marker, or bears another epoch, and nothing of it counts. A store fails: each of its commits is stored by itself
    then; one that fails so does not count, nor does what rests on it, and its node goes on from the markers. By turns
    with those of nodes that are :class:`apart <StoredApart>`, the others' are stored together, so that a node which
    offers what cannot be stored, again and again, holds up itself, and others for one attempt at a time.

    Args:
        markers: up to which position of each slice the dataset has it.
    """

    def __init__(self, term: int, markers: Sequence[int], ownership: Ownership) -> None:
        self._term, self._ownership = term, ownership
        self.markers = list(markers)
        """What is stored."""
        self.records = [0] * len(self.markers)
        """Records of each slice that were stored since the head's start."""
        self._accepted = list(markers)
        self._waiting: list[OfferedCommit] = []
        self._storing: list[OfferedCommit] = []
        self._apart, self._together_next = StoredApart(), True
        self._number = 0
        self._busy: Counter[int] = Counter()

    def offer(self, offered: OfferedCommit) -> bool:
        """Whether a commit counts once it is stored; nothing of it does otherwise."""
        parts = offered.commit.parts
        if not parts or len({part.slice for part in parts}) < len(parts):
            return False
        if not all(self._fits(offered.node, part) for part in parts):
            return False
        for part in parts:
            self._accepted[part.slice] = part.end
            self._busy[part.slice] += 1
        self._waiting.append(offered)
        return True

    def positions(self, commit: Commit) -> dict[int, int]:
        """Where the slices of a commit go on, if it did not count."""
        return {part.slice: self._accepted[part.slice] for part in commit.parts if part.slice in self._ownership}

    def is_busy(self, slice_: int) -> bool:
        """Whether something of a slice is being stored, so that nobody knows yet where it goes on."""
        return bool(self._busy[slice_])

    def next(self) -> StoreCommits | None:
        """What to store now, if there is something and nothing else is being stored."""
        if self._storing or not self._waiting:
            return None
        self._storing = self._choose()
        chosen = set(map(id, self._storing))
        self._waiting = [offered for offered in self._waiting if id(offered) not in chosen]
        self._number += 1
        markers = {part.slice: part.end for offered in self._storing for part in offered.commit.parts}
        commits = [offered.commit for offered in self._storing]
        return StoreCommits(self._number, self._term, commits, markers, [offered.node for offered in self._storing])

    def stored(self, number: int, now: float) -> list[OfferedCommit]:
        """What was stored; those whose commits count now."""
        if number != self._number or not self._storing:
            return []
        done, self._storing = self._storing, []
        for offered in done:
            for part in offered.commit.parts:
                self.markers[part.slice] = part.end
                self.records[part.slice] += part.records
                self._ownership.progress(part.slice, offered.node, now)
        self._apart.stored({offered.node for offered in done})
        self._settle(done)
        return done

    def failed(self, number: int) -> list[OfferedCommit]:
        """What was not stored; those whose commits do not count. Of several, each is tried by itself before."""
        if number != self._number or not self._storing:
            return []
        failed, self._storing, self._together_next = self._storing, [], True
        if len(failed) > 1:
            self._apart.failed({offered.node for offered in failed})
            self._waiting = [*failed, *self._waiting]
            return []
        if self._apart.failed_alone(failed[0].node):
            for part in failed[0].commit.parts:
                self._ownership.blame(part.slice)
        self._accepted = list(self.markers)
        kept = self._list_fitting(self._waiting, self._accepted)
        keep = set(map(id, kept))
        failed += [offered for offered in self._waiting if id(offered) not in keep]
        self._waiting = kept
        self._settle(failed)
        return failed

    def _choose(self) -> list[OfferedCommit]:
        """All that can be stored together, or one that is stored by itself; by turns, if there is both."""
        together = [offered for offered in self._waiting if offered.node not in self._apart]
        together = self._list_fitting(together, list(self.markers))
        alone = [offered for offered in self._waiting if offered.node in self._apart]
        # What rests on somebody else's that waits, waits for that.
        alone = [offered for offered in alone if self._list_fitting([offered], list(self.markers))]
        if together and (self._together_next or not alone):
            self._together_next = False
            return together
        self._together_next = True
        return alone[:1]

    @staticmethod
    def _list_fitting(commits: Sequence[OfferedCommit], reached: list[int]) -> list[OfferedCommit]:
        """Those that begin where the ones before them end, from these positions on, which go along."""
        fitting = []
        for offered in commits:
            parts = offered.commit.parts
            if all(reached[part.slice] == part.begin for part in parts):
                fitting.append(offered)
                for part in parts:
                    reached[part.slice] = part.end
        return fitting

    def _fits(self, node: str, part: SlicePart) -> bool:
        if part.slice not in self._ownership or part.records < 0:
            return False
        owner = self._ownership.is_owner(node, part.slice, part.epoch)
        return owner and part.begin == self._accepted[part.slice] < part.end

    def _settle(self, commits: list[OfferedCommit]) -> None:
        for offered in commits:
            self._busy.subtract(part.slice for part in offered.commit.parts)
        self._busy += Counter()
