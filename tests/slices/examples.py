"""Small systems of a head and nodes, for tests."""

from __future__ import annotations

from tocsin.simulate.slices.hosts import NodePower
from tocsin.simulate.slices.lake import RecordedLog
from tocsin.simulate.slices.system import SliceSystem
from tocsin.slices import events
from tocsin.slices.limits import SliceLimits
from tocsin.slices.sessions import Transfer

LIMITS = SliceLimits(
    settling_seconds=0.5, grace_seconds=1.0, silent_seconds=5.0, prepare_seconds=2.0, release_seconds=2.0
)


class SmallSystem:
    """Some nodes with the names a, b, c, each with its part of the slices, and a log that is written to."""

    def __init__(self, nodes: int = 2, slices: int = 4, limits: SliceLimits = LIMITS, seed: int = 1) -> None:
        self.log = RecordedLog(slices)
        self.system = SliceSystem(self.log, seed, limits)
        self.system.start_head()
        self.names = "abcdefgh"[:nodes]
        for name in self.names:
            self.system.start_node(name, NodePower(1000.0, 0.05))
        self._records = 0
        self.system.advance(2.0)

    def publish(self, count: int, seconds: float) -> None:
        """So many records, spread over all slices and a while."""
        for _ in range(count):
            self.log.append(self._records % self.log.slices, self.system.clock.now, self._records)
            self._records += 1
            self.system.advance(seconds / count)

    def owners(self) -> list[str | None]:
        """Who owns each slice."""
        return [owned.owner for owned in self.system.head.core.ownership.slices]

    def move(self, slice_: int) -> tuple[str, str]:
        """Begins to move a slice to the next node; from whom to whom."""
        giver = self.owners()[slice_]
        assert giver is not None
        taker = self.names[(self.names.index(giver) + 1) % len(self.names)]
        self.system.head.core.sessions.plan([Transfer(giver, taker, (slice_,))])
        self.system.head.tell(events.Drain("nobody", False))
        return giver, taker
