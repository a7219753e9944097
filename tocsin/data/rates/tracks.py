"""What is remembered of each subscription: parallel arrays in the order of the ids, about forty bytes each."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tocsin.data.ids import NONE, IdArray, among, ascending, look_up

Floats = npt.NDArray[np.float64]

_FEWEST_WAITING: Final = 4096


class Tracks:
    """A row for each subscription. A row's place is good until the next call of a method.

    Attributes:
        ids: the subscriptions, ascending.
        channel: the number of its channel.
        begun: since when it is watched.
        at: until when its average tells.
        average: the weighted sum of what it brought.
    """

    def __init__(self) -> None:
        self.ids = NONE
        self.channel: npt.NDArray[np.int32] = np.empty(0, np.int32)
        self.begun: Floats = np.empty(0)
        self.at: Floats = np.empty(0)
        self.average: Floats = np.empty(0)
        # Subscriptions come and go one at a time, but a row among a million costs as much as many: they wait.
        self._begun: list[tuple[IdArray, int, float]] = []
        self._forgotten: list[IdArray] = []
        self._waiting = 0

    def begin(self, ids: IdArray, channel: int, begun: float) -> None:
        """Rows for those that have none yet."""
        # The next look puts in place what waits, and most of what brokers attach to is known from others.
        if not self._waiting and bool(among(ids, self.ids).all()):
            return
        self._begun.append((ids, channel, begun))
        self._wait(len(ids))

    def forget(self, ids: IdArray) -> None:
        """No rows for these any more; an id does not come again."""
        self._forgotten.append(ids)
        self._wait(len(ids))

    def forget_before(self, channel: int, at: float) -> None:
        """No rows for those of a channel that brought nothing since."""
        self._settle()
        stale = (self.at < at) & (self.channel == channel)
        if bool(stale.any()):
            self._keep(~stale)

    def find(self, ids: IdArray) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """For each id whether it has a row, and the places of those that have."""
        self._settle()
        found, places = look_up(ids, self.ids)
        return found, places[found]

    def places(self, ids: IdArray, channel: int, begun: float) -> npt.NDArray[np.intp]:
        """The place of each id, given a row where there is none."""
        self._settle()
        self._insert(ids, channel, begun)
        return np.searchsorted(self.ids, ids)

    def _wait(self, count: int) -> None:
        self._waiting += count
        if self._waiting > max(_FEWEST_WAITING, len(self.ids) // 8):
            self._settle()

    def _settle(self) -> None:
        if self._waiting:
            for ids, channel, begun in self._gather():
                self._insert(ids, channel, begun)
            if self._forgotten:
                self._keep(~among(self.ids, ascending(np.concatenate(self._forgotten))))
        self._begun.clear()
        self._forgotten.clear()
        self._waiting = 0

    def _gather(self) -> list[tuple[IdArray, int, float]]:
        """What waits to begin, in as few pieces as there are channels and times."""
        pieces: dict[tuple[int, float], list[IdArray]] = {}
        for ids, channel, begun in self._begun:
            pieces.setdefault((channel, begun), []).append(ids)
        return [(np.concatenate(ids), channel, begun) for (channel, begun), ids in pieces.items()]

    def _insert(self, ids: IdArray, channel: int, begun: float) -> None:
        new = ascending(ids[~among(ids, self.ids)])
        if not len(new):
            return
        places = np.searchsorted(self.ids, new)
        self.ids = np.insert(self.ids, places, new)
        self.channel = np.insert(self.channel, places, channel)
        self.begun = np.insert(self.begun, places, begun)
        self.at = np.insert(self.at, places, begun)
        self.average = np.insert(self.average, places, 0.0)

    def _keep(self, kept: npt.NDArray[np.bool_]) -> None:
        self.ids, self.channel, self.begun = self.ids[kept], self.channel[kept], self.begun[kept]
        self.at, self.average = self.at[kept], self.average[kept]
