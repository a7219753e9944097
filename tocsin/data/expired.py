"""What results a channel no longer keeps: of each BE subscription, the last execution whose results were removed.

So whoever comes too late can be told what is missing, and nobody is told so for whom nothing was ever found.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tocsin.data.disk import write_durably

Ids = npt.NDArray[np.int64]


class Expired:
    """Kept in a file beside the results, as pairs of 64-bit numbers, replaced as a whole."""

    def __init__(self, file: Path) -> None:
        self._file = file
        pairs = np.frombuffer(file.read_bytes() if file.exists() else b"", np.int64).reshape(-1, 2)
        self._bes, self._executions = pairs[:, 0], pairs[:, 1]

    @property
    def oldest(self) -> int:
        """What executions before this one found is gone, at least in part."""
        return int(self._executions.max(initial=0)) + 1

    def add(self, bes: Ids, executions: Ids, live: Callable[[Ids], Ids]) -> None:
        """Notes results that are about to be removed; on disk when this returns.

        ``live`` gives those of some BE subscriptions that still are: nobody will ask for the others.
        """
        bes, executions = np.concatenate([self._bes, bes]), np.concatenate([self._executions, executions])
        order = np.lexsort((-executions, bes))
        bes, executions = bes[order], executions[order]
        first = np.concatenate([[True], bes[1:] != bes[:-1]]) if len(bes) else np.zeros(0, np.bool_)
        newest, kept = executions.max(initial=0), np.isin(bes, live(bes[first]))
        # The newest of all stays, whosever it is: it says how old results may be.
        chosen = first & (kept | (executions == newest))
        self._bes, self._executions = bes[chosen], executions[chosen]
        write_durably(self._file, np.column_stack([self._bes, self._executions]).astype(np.int64).tobytes())

    def gone(self, first: int, wanted: Ids | None) -> dict[int, int]:
        """Of those that had something from execution ``first`` on which is gone, the last execution that found it."""
        chosen = self._executions >= first
        if wanted is not None:
            chosen &= np.isin(self._bes, wanted)
        return dict(zip(self._bes[chosen].tolist(), self._executions[chosen].tolist(), strict=True))
