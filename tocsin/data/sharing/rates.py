"""What comes for slices and waits: from how much of the log lies ahead, looked at again and again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from tocsin.slices.messages import SliceLoad

_SPAN_SECONDS: Final = 10.0


class _Seen(NamedTuple):
    """A slice at the last look: its position, what lay ahead of it then, and its rate, which the first look lacks."""

    position: int
    ahead: int
    rate: float | None


class SliceRates:
    """Bytes per second of each slice, a moving average over some seconds.

    A slice's log is looked at twice each time, from where the node was at the last look and from where it is: what lies
    ahead of the same place has grown by what has come.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._at = 0.0

    def before(self, positions: Mapping[int, int]) -> dict[int, int]:
        """Where to look from first: the positions of the last look, of those that are still there."""
        return {slice_: seen.position for slice_, seen in self._seen.items() if slice_ in positions}

    def note(
        self, now: float, positions: Mapping[int, int], grown: Mapping[int, int], ahead: Mapping[int, int]
    ) -> list[SliceLoad]:
        """The loads: of ``positions``, with what lies ``ahead`` of them and ``grown``, ahead of those before."""
        seconds, self._at = max(now - self._at, 1e-3), now
        kept = math.exp(-seconds / _SPAN_SECONDS)
        seen: dict[int, _Seen] = {}
        for slice_, position in positions.items():
            if slice_ not in ahead:
                continue
            before, rate = self._seen.get(slice_), None
            if before is not None and slice_ in grown:
                came = max(grown[slice_] - before.ahead, 0) / seconds
                rate = came if before.rate is None else kept * before.rate + (1 - kept) * came
            seen[slice_] = _Seen(position, ahead[slice_], rate)
        self._seen = seen
        return [SliceLoad(slice_, round(one.rate), one.ahead) for slice_, one in seen.items() if one.rate is not None]
