"""Which records a dataset already has: the ids seen, as 128-bit hashes in sorted runs on disk.

A publisher that does not know whether its request got through sends it again; a record whose id was seen before is
then stored once. An exact check against the dataset would read ever more for every batch. The hashes take 16 bytes
per record, looking a batch up is a binary search in each of a few memory-mapped runs, and two different ids sharing
a 128-bit hash will not happen (one chance in 10^19 for ten thousand million records).

The index is only an aid: each run says which versions of the dataset it covers, and whatever is missing is read from
the dataset at start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tocsin.data.feeds.runs import open_runs, write_run
from tocsin.log import get_logger

log = get_logger(__name__)

Hashes = npt.NDArray[np.uint64]
_FANOUT = 8
_SPILL = 200_000


def hash_ids(ids: Iterable[object]) -> Hashes:
    """The hash of each id: one row for the first halves, one for the second, each searched as a plain array."""
    digest = hashlib.blake2b
    digests = b"".join(digest(str(i).encode(), digest_size=16, person=b"tocsin-id").digest() for i in ids)
    return halves(digests)


class SeenIds:
    """The ids of one append dataset. Not thread-safe: the ingestion of that dataset owns it.

    What can go wrong: the disk refuses a run (the ids stay in memory, and writing is tried again with the next ones);
    the process dies at any point (what no whole run has is taught again from the dataset).

    Args:
        directory: where runs are kept; its content may be deleted while no process runs.
        spill: this many ids are kept in memory before they are written.
    """

    def __init__(self, directory: Path, spill: int = _SPILL) -> None:
        self.spill = spill
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._recent: dict[bytes, None] = {}
        self._runs = open_runs(directory)
        self.version = self._written

    def __len__(self) -> int:
        return len(self._recent) + sum(len(run) for run in self._runs)

    def unseen(self, ids: Sequence[object]) -> npt.NDArray[np.bool_]:
        """For each id whether it is new: never added, and not earlier in ``ids``."""
        return self.unseen_hashes(hash_ids(ids))

    def unseen_hashes(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """As :meth:`unseen`, of ids that are hashed."""
        new = np.ones(hashes.shape[1], dtype=bool)
        for run in self._runs:
            new &= ~run.contains(hashes)
        keys = join_halves(hashes)
        here: set[bytes] = set()
        for i in np.flatnonzero(new):
            key = keys[16 * i : 16 * i + 16]
            new[i] = key not in self._recent and key not in here
            here.add(key)
        return new

    def add(self, ids: Sequence[object], version: int) -> None:
        """Remembers ids, with which all that the dataset has up to ``version`` is known."""
        self.add_hashes(hash_ids(ids), version)

    def add_hashes(self, hashes: Hashes, version: int) -> None:
        """As :meth:`add`, of ids that are hashed."""
        keys = join_halves(hashes)
        self._recent.update((keys[i : i + 16], None) for i in range(0, len(keys), 16))
        self.version = version
        if len(self._recent) >= self.spill and version > self._written:
            try:
                self._write()
            except OSError as error:
                log.warning("ids seen are kept in memory", directory=str(self._directory), reason=str(error))

    def clear(self) -> None:
        """Forgets everything."""
        for run in self._runs:
            run.path.unlink(missing_ok=True)
        self._runs, self.version = [], 0
        self._recent.clear()

    @property
    def _written(self) -> int:
        """Up to which version the runs go."""
        return self._runs[-1].last if self._runs else 0

    def _write(self) -> None:
        """Writes the recent ids as a run, together with the runs that are not much larger."""
        hashes = halves(b"".join(self._recent))
        parts, size = [hashes[:, np.lexsort(hashes[::-1])]], len(self._recent)
        kept = list(self._runs)
        while kept and len(kept[-1]) < _FANOUT * size:
            merged = kept.pop()
            parts.append(merged.hashes)
            size += len(merged)
        first = kept[-1].last + 1 if kept else 1
        run = write_run(self._directory, first, self.version, parts)
        replaced, self._runs = self._runs[len(kept) :], [*kept, run]
        self._recent.clear()
        for old in replaced:
            old.path.unlink(missing_ok=True)


def halves(digests: bytes) -> Hashes:
    """Hashes of 16 bytes each, one after the other, as two rows of halves."""
    return np.ascontiguousarray(np.frombuffer(digests, "<u8").reshape(-1, 2).T)


def join_halves(hashes: Hashes) -> bytes:
    """The same back."""
    return hashes.T.tobytes()
