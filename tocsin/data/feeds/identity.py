"""Which records a dataset already has: the ids seen, as 128-bit hashes in sorted runs on disk.

A publisher that does not know whether its request got through sends it again; a record whose id was seen before is
then stored once. An exact check against the dataset would read ever more for every batch. The hashes take 16 bytes
per record, looking a batch up is a binary search in each of a few memory-mapped runs, and two different ids sharing
a keyed 128-bit hash will not happen (one chance in 10^19 for ten thousand million records).

The index is only an aid: each run says up to which version of the dataset it goes, and whatever is missing is read from
the dataset at start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

# One row for the first halves of the hashes, one for the second: each is searched as a plain array.
Hashes = npt.NDArray[np.uint64]
_HALF = np.dtype("<u8")
_FANOUT = 8
_SPILL = 200_000


def hashed(ids: Iterable[object]) -> Hashes:
    """The hash of each id."""
    digest = hashlib.blake2b
    joined = b"".join(digest(str(i).encode(), digest_size=16, person=b"tocsin-id").digest() for i in ids)
    return _halves(joined)


class SeenIds:
    """The ids of one append dataset. Not thread-safe: the ingestion of that dataset owns it.

    Args:
        directory: where runs are kept; its content may be deleted while no process runs.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._recent: dict[bytes, None] = {}
        self._runs: list[tuple[Path, Hashes]] = []
        self.version = 0
        self._open()

    def __len__(self) -> int:
        return len(self._recent) + sum(int(run.shape[1]) for _, run in self._runs)

    def unseen(self, ids: Sequence[object]) -> npt.NDArray[np.bool_]:
        """For each id whether it is new: in none of the runs, and not earlier in ``ids``."""
        hashes = hashed(ids)
        new = np.ones(len(ids), dtype=bool)
        for _, run in self._runs:
            new &= ~_contained(run, hashes)
        keys = _joined(hashes)
        here: set[bytes] = set()
        for i in np.flatnonzero(new):
            key = keys[16 * i : 16 * i + 16]
            new[i] = key not in self._recent and key not in here
            here.add(key)
        return new

    def add(self, ids: Sequence[object], version: int) -> None:
        """Remembers ids that the dataset has since ``version``."""
        keys = _joined(hashed(ids))
        self._recent.update((keys[i : i + 16], None) for i in range(0, len(keys), 16))
        self.version = version
        if len(self._recent) >= _SPILL:
            self._spill()

    def _open(self) -> None:
        # Of runs that begin alike the longest is the merged one; those merged into it are left over from a crash.
        for path in sorted(self._directory.glob("*.run"), key=lambda p: (_versions(p)[0], -_versions(p)[1])):
            first, last = _versions(path)
            if first != self.version + 1 or path.stat().st_size % 16:
                path.unlink()
                continue
            self._runs.append((path, _mapped(path)))
            self.version = last

    def _spill(self) -> None:
        """Writes the recent ids as a run, together with the runs that are not much larger."""
        first = _versions(self._runs[-1][0])[1] + 1 if self._runs else 1
        hashes = _halves(b"".join(self._recent))
        merged: list[Path] = []
        while self._runs and self._runs[-1][1].shape[1] < _FANOUT * hashes.shape[1]:
            path, run = self._runs.pop()
            hashes, first = np.concatenate([run, hashes], axis=1), _versions(path)[0]
            merged.append(path)
        self._runs.append(self._write(hashes[:, np.lexsort(hashes[::-1])], first))
        self._recent.clear()
        for path in merged:
            path.unlink(missing_ok=True)

    def _write(self, hashes: Hashes, first: int) -> tuple[Path, Hashes]:
        path = self._directory / f"{first}-{self.version}.run"
        partial = path.with_suffix(".part")
        np.ascontiguousarray(hashes).tofile(partial)
        partial.rename(path)
        return path, _mapped(path)


def _contained(run: Hashes, hashes: Hashes) -> npt.NDArray[np.bool_]:
    """For each hash whether the sorted run has it."""
    size = run.shape[1]
    found = np.zeros(hashes.shape[1], dtype=bool)
    if not size:
        return found
    at = np.searchsorted(run[0], hashes[0])
    # Two hashes with the same first half are all but unheard of; the loop ends after one round in practice.
    while True:
        there = np.minimum(at, size - 1)
        alike = (at < size) & (run[0][there] == hashes[0])
        found |= alike & (run[1][there] == hashes[1])
        undecided = alike & ~found
        if not undecided.any():
            return found
        at = at + undecided


def _halves(joined: bytes) -> Hashes:
    return np.ascontiguousarray(np.frombuffer(joined, _HALF).reshape(-1, 2).T)


def _joined(hashes: Hashes) -> bytes:
    return hashes.T.tobytes()


def _mapped(path: Path) -> Hashes:
    size = path.stat().st_size // 16
    return np.memmap(path, _HALF, mode="r", shape=(2, size)) if size else np.zeros((2, 0), _HALF)


def _versions(path: Path) -> tuple[int, int]:
    first, last = path.stem.split("-")
    return int(first), int(last)
