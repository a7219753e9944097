"""Who owns which slice, by which epoch. Only the head knows; nodes are told."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import Epoch


@dataclass
class OwnedSlice:
    """A slice at the head.

    Args:
        owner: a node, or nobody.
        epoch: what its commits must bear; of a slice without an owner, what no commit bears.
        progressed: whether its owner has committed something of it.
        relapses: how many owners in a row have died without that.
        free_at: when it may be given to somebody, if it has no owner.
        since: when its owner last got on with it, or had nothing to get on with.
        seen: when that was looked at last.
        excused: how long something of it has been on its way into the dataset since then.
        avoid: a node that could not process it; another one has it, if there is any.
        stored: whose commit of it was the last, and when; None: there was none since the head's start.
        pause: when it last changed hands, the seconds between the last commit of its old owner and the new one's first.
    """

    number: int
    epoch: Epoch
    owner: str | None = None
    progressed: bool = False
    relapses: int = 0
    free_at: float = 0.0
    since: float = inf
    seen: float = 0.0
    excused: float = 0.0
    avoid: str | None = None
    stored: tuple[str, float] | None = None
    pause: float | None = None


class Ownership:
    """All slices of a feed. A slice has one owner at most, and a higher epoch whenever that changes.

    What can go wrong: a slice makes whoever processes it die. Its next owner gets it later and later, so that it does
    not take down one node after the other; the other slices of the dead are given away at once, if they got on.
    """

    def __init__(self, term: int, slices: int, limits: SliceLimits) -> None:
        self._term, self._grants, self._limits = term, 0, limits
        self.slices = [OwnedSlice(number, self.next_epoch()) for number in range(slices)]
        self._of: dict[str, dict[int, None]] = {}
        self._free: dict[int, None] = dict.fromkeys(range(slices))

    def __getitem__(self, slice_: int) -> OwnedSlice:
        return self.slices[slice_]

    def __contains__(self, slice_: int) -> bool:
        return 0 <= slice_ < len(self.slices)

    def next_epoch(self) -> Epoch:
        """One that is higher than all before."""
        self._grants += 1
        return Epoch(self._term, self._grants)

    def of(self, node: str) -> list[int]:
        """The slices that a node owns."""
        return list(self._of.get(node, ()))

    def free(self) -> list[int]:
        """The slices that nobody owns."""
        return list(self._free)

    def is_owner(self, node: str, slice_: int, epoch: Epoch) -> bool:
        """Whether a node owns a slice by this epoch."""
        owned = self.slices[slice_]
        return owned.owner == node and owned.epoch == epoch

    def give(self, slice_: int, node: str, epoch: Epoch) -> None:
        """A node owns a slice from now on; whoever had it does not any more."""
        owned = self.slices[slice_]
        if owned.owner is not None:
            self._of[owned.owner].pop(slice_)
        self._free.pop(slice_, None)
        owned.owner, owned.epoch, owned.progressed, owned.since, owned.excused = node, epoch, False, inf, 0.0
        self._of.setdefault(node, {})[slice_] = None

    def renew(self, slice_: int) -> None:
        """Its owner has it by a higher epoch: it is another process, or has lost what it had."""
        self.slices[slice_].epoch = self.next_epoch()

    def take_away(self, slice_: int, now: float) -> None:
        """Nobody owns it from now on: its owner is gone, or cannot process it."""
        owned = self.slices[slice_]
        if owned.owner is None:
            return
        self._of[owned.owner].pop(slice_)
        self._free[slice_] = None
        owned.owner, owned.epoch = None, self.next_epoch()
        owned.free_at = now if owned.progressed else now + self._relapse(owned)

    def progress(self, slice_: int, node: str, now: float) -> None:
        """Something of it that a node has offered was committed."""
        owned = self.slices[slice_]
        if owned.stored is not None and owned.stored[0] != node:
            owned.pause = now - owned.stored[1]
        owned.stored = node, now
        owned.progressed, owned.relapses, owned.avoid = True, 0, None
        owned.since, owned.excused = inf, 0.0

    def watch(self, slice_: int, now: float, waits: bool, offered: bool = False) -> bool:
        """Something of it waits for its owner, or nothing does; whether something has waited for too long.

        The time begins when that is seen first, and anew with each commit. While something of it is ``offered``, it
        waits for the head.
        """
        owned = self.slices[slice_]
        if not waits:
            owned.since, owned.excused = inf, 0.0
        elif offered:
            owned.excused += now - owned.seen
        elif owned.since == inf:
            owned.since, owned.excused = now, 0.0
        owned.seen = now
        return now - owned.since - owned.excused > self._limits.stuck_seconds

    def blame(self, slice_: int) -> None:
        """What was offered of it could not be stored, and that was its owner's fault: that time counts after all."""
        self.slices[slice_].excused = 0.0

    def wake(self, now: float) -> float:
        """When the next slice may be given away that may not yet."""
        return min((self.slices[n].free_at for n in self._free if self.slices[n].free_at > now), default=inf)

    def _relapse(self, owned: OwnedSlice) -> float:
        owned.relapses += 1
        if owned.relapses == 1:
            return 0.0
        waits = self._limits.relapse_seconds * 2.0 ** min(owned.relapses - 2, 30)
        return min(waits, self._limits.longest_relapse_seconds)
