"""The cache of a broker that is not given results: it knows which of them it would have, by their weight."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tocsin.balance.model.workload import Int64s
from tocsin.broker.cache import LeastRecentlyUsed, ResultCache

_MANY = 20_000


class Weight(bytes):
    """A result of which only the length matters."""

    _size: int

    @classmethod
    def of(cls, size: int) -> Weight:
        """A result of so many bytes."""
        weight = cls()
        weight._size = size
        return weight

    def __len__(self) -> int:
        return self._size


class WeightCache(ResultCache):
    """A cache that has nothing to give, and says what it would have given.

    What happens to it is only written down, and done when somebody asks, which in many runs nobody does.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit, LeastRecentlyUsed())
        self._written: list[Callable[[], None]] = []

    def write(self, now: float, execution: int, bes: Int64s, weights: Int64s) -> None:
        """An execution has found so much for each of these BE subscriptions."""
        self._write(partial(self._put, now, execution, bes, weights))

    def open(self, be: int, since: int) -> None:
        """From now on what is found for a BE subscription counts."""
        self._write(partial(super().open, be, since))

    def close(self, be: int) -> None:
        """Forgets a BE subscription."""
        self._write(partial(super().close, be))

    def after(self, be: int, execution: int) -> list[tuple[int, bytes]]:  # noqa: ARG002
        """Nothing, whatever is asked for: all of it counts as had."""
        return []

    def has(self, be: int, execution: int) -> bool:
        """Whether all results of the BE subscription after an execution would be here, for somebody who is given
        them."""
        self._catch_up()
        return super().after(be, execution) is not None

    def _write(self, what: Callable[[], None]) -> None:
        self._written.append(what)
        if len(self._written) > _MANY:
            self._catch_up()

    def _catch_up(self) -> None:
        written, self._written = self._written, []
        for done in written:
            done()

    def _put(self, now: float, execution: int, bes: Int64s, weights: Int64s) -> None:
        for be, weight in sorted(zip(bes.tolist(), weights.tolist(), strict=True)):
            self.put(now, be, execution, Weight.of(weight))
