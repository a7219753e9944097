"""How many records a batch may have, where a log tells how many there are, and not how large they are."""

from __future__ import annotations

from typing import Final

# A quarter of a gigabyte, if each is as large as a record may be.
_FEWEST: Final = 256
_WEIGHT: Final = 0.1


class RecordPace:
    """Bounds batches in bytes by what those before have had.

    Records to come may be far larger: a batch has at most twice as many as one that was read before. After one that
    failed it begins with a few again, and so does a new process, so that nobody dies of the same batch twice.
    """

    def __init__(self, record_bytes: float) -> None:
        self._record_bytes, self._most = record_bytes, _FEWEST

    def most(self, max_bytes: int) -> int:
        """The most records of a batch of about so many bytes."""
        return min(self._most, max(int(max_bytes / self._record_bytes), 1))

    def took(self, records: int, size: int) -> None:
        """A batch of so many records and bytes was read, whatever became of them."""
        if not records:
            return
        mean = size / records
        # Sooner believed to be large than small.
        self._record_bytes = max(mean, self._record_bytes + _WEIGHT * (mean - self._record_bytes))
        self._most = max(self._most, 2 * records)

    def failed(self) -> None:
        """A batch could not be read."""
        self._most = _FEWEST
