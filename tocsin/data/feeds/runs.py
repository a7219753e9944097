"""Sorted runs of hashes on disk, memory-mapped.

A run ``3-17.run`` has the hashes of all ids that versions 3 to 17 of a dataset brought: all first halves, ascending,
then all second halves. It is there as a whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
_HALF = np.dtype("<u8")
# So many hashes of the longest part are merged at a time.
_PIECE = 1 << 19


class IdRun:
    """One run, of the versions ``first`` to ``last``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.first, self.last = versions(path)
        size = path.stat().st_size // 16
        self.hashes: Hashes = np.memmap(path, _HALF, mode="r", shape=(2, size)) if size else np.zeros((2, 0), _HALF)

    def __len__(self) -> int:
        return int(self.hashes.shape[1])

    def contains(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """For each hash whether it is here."""
        heads, tails = self.hashes
        found = np.zeros(hashes.shape[1], dtype=bool)
        if not len(self):
            return found
        at = np.searchsorted(heads, hashes[0])
        # Two hashes with the same first half are all but unheard of; the loop ends after one round in practice.
        while True:
            there = np.minimum(at, len(self) - 1)
            alike = (at < len(self)) & (heads[there] == hashes[0])
            found |= alike & (tails[there] == hashes[1])
            undecided = alike & ~found
            if not undecided.any():
                return found
            at = at + undecided


def open_runs(directory: Path) -> list[IdRun]:
    """The runs that follow each other from version 1 on; what a crash left beside them is removed."""
    for draft in directory.glob("*.part"):
        draft.unlink()
    # Of runs that begin alike the longest is the merged one; those merged into it come after it and do not follow.
    paths = sorted(directory.glob("*.run"), key=lambda path: (versions(path)[0], -versions(path)[1]))
    runs: list[IdRun] = []
    for path in paths:
        if versions(path)[0] == (runs[-1].last + 1 if runs else 1) and path.stat().st_size % 16 == 0:
            runs.append(IdRun(path))
        else:
            path.unlink()
    return runs


def write_run(directory: Path, first: int, last: int, parts: Sequence[Hashes]) -> IdRun:
    """Merges sorted parts into one run, in little memory; on disk when this returns."""
    path = directory / f"{first}-{last}.run"
    draft = path.with_suffix(".part")
    with draft.open("wb") as file:
        _merge(file.fileno(), parts)
        os.fsync(file.fileno())
    draft.replace(path)
    return IdRun(path)


def versions(path: Path) -> tuple[int, int]:
    """The first and the last version that a run is named for; (0, 0), which follows nothing, for other names."""
    first, _, last = path.stem.partition("-")
    return (int(first), int(last)) if first.isdecimal() and last.isdecimal() else (0, 0)


def _merge(file: int, parts: Sequence[Hashes]) -> None:
    size = sum(part.shape[1] for part in parts)
    longest = max(parts, key=lambda part: part.shape[1])
    # Equal first halves fall on the same side of every bound, so that pieces follow each other in order.
    bounds = np.unique(longest[0][_PIECE::_PIECE])
    cuts = [[0, *np.searchsorted(part[0], bounds).tolist(), part.shape[1]] for part in parts]
    at = 0
    for number in range(len(bounds) + 1):
        pieces = [part[:, cut[number] : cut[number + 1]] for part, cut in zip(parts, cuts, strict=True)]
        piece = np.concatenate(pieces, axis=1)
        piece = piece[:, np.lexsort(piece[::-1])]
        _write_at(file, piece[0], at * 8)
        _write_at(file, piece[1], (size + at) * 8)
        at += piece.shape[1]


def _write_at(file: int, values: npt.NDArray[np.uint64], offset: int) -> None:
    data = memoryview(values.astype(_HALF, copy=False).tobytes())
    while data:
        count = os.pwrite(file, data, offset)
        data, offset = data[count:], offset + count
