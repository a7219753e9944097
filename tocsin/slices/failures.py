"""Which slices a node's next batch takes when batches have failed: so that one slice does not hold up the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from tocsin.slices.limits import SliceLimits

_AGAIN: Final = 3
_BESIDE_HALVINGS: Final = 3


@dataclass
class LeftOut:
    """A slice that has failed by itself: how often, when it is tried again, and what was said the last time.

    ``proven``: something else has succeeded since it failed for the first time, so that it is this slice's fault.
    """

    failures: int
    until: float
    reason: str
    proven: bool = False


class FailingSlices:
    """Finds the slices that make batches fail, by halves, and leaves them out for longer and longer.

    A failed batch makes all its slices suspects. The next one takes half as many of them, and so on; one that fails by
    itself is left out, and tried by itself after 1, 2, 4 … 60 s (``retry_seconds``, ``longest_relapse_seconds``). What
    is in a batch that succeeds is cleared, and the next takes half of the suspects that are left. With one bad slice of
    S, some 2 log S batches later all others are processed together again.

    What can go wrong: it is no slice's fault, as the log or the disk is away. Then nothing succeeds. After more
    failures than halving explains, everything is tried together again, from another slice on; nobody's pause has grown,
    and ``problem`` says what is wrong with the node.
    """

    def __init__(self, limits: SliceLimits) -> None:
        self._limits = limits
        self._suspects: dict[int, None] = {}
        self._left_out: dict[int, LeftOut] = {}
        self._most = 1
        # Since something last succeeded, and since everything was last tried together.
        self._in_a_row, self._tried = 0, 0
        self._reason, self._turn, self._others_first = "", 0, False

    @property
    def problem(self) -> str:
        """Why batches fail again and again, if all of them do."""
        return self._reason if self._in_a_row >= _AGAIN else ""

    @property
    def left_out(self) -> dict[int, str]:
        """The slices that are left out for now, and why. From any thread."""
        return {slice_: one.reason for slice_, one in list(self._left_out.items()) if one.proven}

    def choose(self, now: float, slices: Sequence[int]) -> list[int]:
        """Those of some slices that the next batch takes: suspects, who has been left out for long enough, or all."""
        well = [slice_ for slice_ in slices if slice_ not in self._left_out]
        if suspects := [slice_ for slice_ in well if slice_ in self._suspects]:
            first = self._turn * (len(suspects) // 2 + 1) % len(suspects)
            return (suspects[first:] + suspects[:first])[: self._most]
        due = (slice_ for slice_ in slices if slice_ in self._left_out and self._left_out[slice_].until <= now)
        # Whoever fails by itself takes its turn with the others, however long a batch takes.
        alone = None if self._others_first and well else next(due, None)
        return well if alone is None else [alone]

    def wake(self, slices: Iterable[int]) -> float:
        """From when on there is something to choose of some slices."""
        return min((self._left_out[each].until if each in self._left_out else -inf for each in slices), default=inf)

    def succeed(self, slices: Collection[int], found: bool) -> None:
        """A batch of these was processed. If nothing was ``found`` to be processed, that proves nothing."""
        self.forget(slices)
        self._most, self._others_first = max(len(self._suspects) // 2, 1), False
        if found:
            self._in_a_row = self._tried = 0
            for left_out in self._left_out.values():
                left_out.proven = True

    def fail(self, now: float, slices: Collection[int], reason: str) -> bool:
        """A batch of these was not. Whether that was to be expected, so that there is no need to wait."""
        known = any(self._left_out[slice_].proven for slice_ in slices if slice_ in self._left_out)
        if not (known and len(slices) == 1):
            # What is known to be one slice's fault says nothing about the node.
            self._reason = reason
            self._in_a_row += 1
            self._tried += 1
        self._others_first = len(slices) == 1
        if len(slices) == 1:
            self._leave_out(now, next(iter(slices)), reason)
        else:
            self._suspects |= dict.fromkeys(slices)
            self._most = len(slices) // 2
        if self._tried > len({*self._suspects, *self._left_out}).bit_length() + _BESIDE_HALVINGS:
            self._start_over()
        return known

    def forget(self, slices: Iterable[int]) -> None:
        """Nothing is held against these."""
        for slice_ in slices:
            self._suspects.pop(slice_, None)
            self._left_out.pop(slice_, None)

    def _leave_out(self, now: float, slice_: int, reason: str) -> None:
        self._suspects.pop(slice_, None)
        before = self._left_out.get(slice_, LeftOut(0, now, reason))
        failures = before.failures + before.proven or 1
        seconds = self._limits.retry_seconds * 2.0 ** min(failures - 1, 30)
        until = now + min(seconds, self._limits.longest_relapse_seconds)
        self._left_out[slice_] = LeftOut(failures, until, reason, before.proven)

    def _start_over(self) -> None:
        """Nothing succeeds, whatever is tried."""
        self._suspects.clear()
        self._left_out = {slice_: one for slice_, one in self._left_out.items() if one.proven}
        self._tried, self._turn = 0, self._turn + 1
