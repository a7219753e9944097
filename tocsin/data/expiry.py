"""What results a channel no longer keeps: of each BE subscription, the last execution whose results were removed.

So whoever comes too late can be told what is missing, and nobody is told so for whom nothing was ever found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from tocsin.data.lake.folder import Folder
from tocsin.data.lake.refusals import storage_errors

Ids = npt.NDArray[np.int64]
# Not among the files that the table knows, as the name says.
_FILE: Final = "_expired"


class Expired:
    """Kept in a file beside the results, as pairs of 64-bit numbers, replaced as a whole."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        pairs = np.frombuffer(_content(folder), np.int64).reshape(-1, 2)
        self._bes, self._executions = pairs[:, 0], pairs[:, 1]

    @property
    def oldest(self) -> int:
        """What executions before this one found is gone, at least in part."""
        return int(self._executions.max(initial=0)) + 1

    def add(self, bes: Ids, executions: Ids, live: Callable[[Ids], Ids]) -> None:
        """Notes results that are about to be removed; durable when this returns.

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
        pairs = np.column_stack([self._bes, self._executions]).astype(np.int64)
        with storage_errors(self._folder):
            self._folder.write(_FILE, pairs.tobytes())

    def last_gone(self, first: int, wanted: Ids | None) -> dict[int, int]:
        """Of those that had something from execution ``first`` on which is gone, the last execution that found it."""
        chosen = self._executions >= first
        if wanted is not None:
            chosen &= np.isin(self._bes, wanted)
        return dict(zip(self._bes[chosen].tolist(), self._executions[chosen].tolist(), strict=True))


def _content(folder: Folder) -> bytes:
    with storage_errors(folder):
        try:
            return folder.read(_FILE)
        except FileNotFoundError:
            return b""
