"""How much of a log a batch may have: so many records where it is not known how large they are, or so many bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FEWEST: Final = 64
"""A batch of no more is read whatever is in it: a quarter of a gigabyte, if each is as large as is taken."""
_FEWEST_BYTES: Final = 1 << 20
# As rows, a batch may have so many times the bytes that it may have in the log.
_SWELLING: Final = 4
_WEIGHT: Final = 0.1
_CUT: Final = 16


class RecordPace:
    """Bounds batches in bytes by what those before have had.

    Records to come may be far larger: a batch has at most twice as many as one that was read before, and whoever reads
    more than ``FEWEST`` gives up where they are far larger than was thought, as if it had failed. A new process begins
    with a few again, so that nobody dies of the same batch twice. What failed is read by fewer and fewer of each slice
    that it was of, down to one, and by twice as many each time that this succeeds.
    """

    def __init__(self, record_bytes: float, fewest: int = FEWEST) -> None:
        self._record_bytes, self._most, self._fewest = record_bytes, fewest, fewest
        # Of the slices that a batch was of which failed.
        self._careful: dict[int, int] = {}

    def most(self, max_bytes: int) -> int:
        """The most records of a batch of about so many bytes."""
        return min(self._most, max(int(max_bytes / self._record_bytes), 1))

    def bound(self, slice_: int, records: int) -> int:
        """How many of these a batch may have of a slice."""
        return min(records, self._careful.get(slice_, records))

    def took(self, shares: Mapping[int, int], size: int) -> None:
        """A batch of so many records of each slice, and so many bytes, was read, whatever became of them."""
        records = sum(shares.values())
        if not records:
            return
        mean = size / records
        # Sooner believed to be large than small.
        self._record_bytes = max(mean, self._record_bytes + _WEIGHT * (mean - self._record_bytes))
        self._most = max(self._most, 2 * records)
        for slice_ in shares.keys() & self._careful.keys():
            self._careful[slice_] = max(self._careful[slice_], 2 * shares[slice_])
            if self._careful[slice_] > self._fewest:
                del self._careful[slice_]

    def failed(self, shares: Mapping[int, int]) -> None:
        """A batch of so many records of each slice could not be read, or not be processed."""
        self._most = self._fewest
        for slice_, records in shares.items():
            self._careful[slice_] = max(min(records, self._fewest) // _CUT, 1)


class BytePace(RecordPace):
    """The same of a log whose positions are bytes, which may be many more as rows: records leave columns out, or have
    lists of next to nothing. A batch has at most so many bytes that its rows, by those before, are bounded, too."""

    def __init__(self) -> None:
        super().__init__(1.0, _FEWEST_BYTES)

    def most(self, max_bytes: int) -> int:
        """The most bytes of a batch."""
        return min(self._most, max_bytes, max(int(_SWELLING * max_bytes / self._record_bytes), 1))
