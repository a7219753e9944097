"""Records of datasets that a channel reads as a whole and cannot be executed on, and who does without them. Pure.

Such a record is there at every execution, so it is remembered, by its digest, and left out from the beginning. A record
that is replaced has another digest, and with it another chance. Blame is laid as narrowly as for new records: who
subscribes later is not concerned until it has been found out that they are.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tocsin.data.compiler.rewrite import BE
from tocsin.data.ids import IdArray

MOST: Final = 16
"""So many groups of subscriptions of one channel do without different records; each is a share of every execution."""

Record = tuple[str, str]
"""A dataset, and the digest of a record."""


@dataclass(frozen=True)
class Stain:
    """The subscriptions ``bes`` do without these records; without any named, all up to ``last``."""

    records: frozenset[Record]
    bes: tuple[int, ...] = ()
    last: int = 0

    @property
    def condition(self) -> str:
        """The subscriptions, in SQL."""
        return f"{BE} IN ({', '.join(map(str, self.bes))})" if self.bes else f"{BE} <= {self.last}"

    def among(self, ids: IdArray) -> npt.NDArray[np.bool_]:
        """Which of some subscriptions are meant."""
        return np.isin(ids, self.bes) if self.bes else ids <= self.last

    def of(self, dataset: str) -> set[str]:
        """The digests of a dataset's records."""
        return {digest for name, digest in self.records if name == dataset}


class Stains:
    """Of all channels; in memory, for whatever is to blame will be found again."""

    def __init__(self) -> None:
        self._stains: dict[str, list[Stain]] = {}
        self._lock = threading.Lock()

    def of(self, channel: str) -> Sequence[Stain]:
        """Those of a channel."""
        with self._lock:
            return self._stains.get(channel, ())

    def put(self, channel: str, stains: Sequence[Stain]) -> None:
        """In place of those of before."""
        with self._lock:
            self._stains[channel] = [stain for stain in stains if stain.records]

    def forget(self, channel: str) -> None:
        """A channel that is no more, or another one now."""
        with self._lock:
            self._stains.pop(channel, None)


def rest(stains: Sequence[Stain]) -> str:
    """The subscriptions that do without nothing, in SQL."""
    return " AND ".join(f"NOT ({stain.condition})" for stain in stains) or "true"


def concerns_all(stains: Sequence[Stain], ids: IdArray) -> bool:
    """Whether there is nobody who does without nothing."""
    return bool(np.logical_or.reduce([stain.among(ids) for stain in stains], axis=0).all())
