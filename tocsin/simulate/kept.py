"""The cache of a broker that is not given results: it knows which of them it would have, by their weight."""

from __future__ import annotations

from tocsin.balance.workload import Int64s
from tocsin.broker.cache import Cache, LeastRecentlyUsed

_MANY = 1000


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


class Kept(Cache):
    """A cache that has nothing to give, and says what it would have given.

    What is put is only written down: it is put on its shelf when somebody asks, which in many runs nobody does.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit, LeastRecentlyUsed())
        self._written: list[tuple[float, int, Int64s, Int64s]] = []

    def write(self, now: float, execution: int, bes: Int64s, weights: Int64s) -> None:
        """An execution has found so much for each of these lines."""
        self._written.append((now, execution, bes, weights))
        if len(self._written) > _MANY:
            self._put_all()

    def close(self, be: int) -> None:
        """Forgets a line."""
        self._put_all()
        super().close(be)

    def after(self, be: int, execution: int) -> list[tuple[int, bytes]]:  # noqa: ARG002
        """Nothing, whatever is asked for: all of it counts as had."""
        return []

    def has(self, be: int, execution: int) -> bool:
        """Whether all results of the line after an execution would be here, for somebody who is given them."""
        self._put_all()
        return super().after(be, execution) is not None

    def _put_all(self) -> None:
        written, self._written = self._written, []
        for now, execution, bes, weights in written:
            for be, weight in sorted(zip(bes.tolist(), weights.tolist(), strict=True)):
                self.put(now, be, execution, Weight.of(weight))
