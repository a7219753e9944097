"""A core as a process on a host: told what happens, woken when it wants to be, and gone when it crashes."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any, Protocol

from tocsin.simulate.network import SimulatedNetwork
from tocsin.simulate.trace import Trace


class Machine(Protocol):
    """What all cores have in common."""

    def handle(self, now: float, event: Any) -> Iterable[Any]: ...

    def wake(self) -> float | None: ...


class SimulatedWorld:
    """What all processes share."""

    def __init__(self, network: SimulatedNetwork, trace: Trace) -> None:
        self.network, self.trace = network, trace
        self.clock, self.random = network.clock, network.random


class CoreProcess:
    """Drives one core, from its start to its end.

    ``fuse`` is how many more actions it carries out before it crashes, in the middle of what it does if need be.
    """

    def __init__(self, world: SimulatedWorld, host: str, core: Machine, tick: object) -> None:
        self.world, self.host, self.core = world, host, core
        self.alive = True
        self.fuse: int | None = None
        self._tick = tick
        self._armed = inf

    def tell(self, event: Any, data: bytes | str = b"") -> None:
        """Has the core handle an event, and carries out what it wants done."""
        if not self.alive:
            return
        now = self.world.clock.now
        self.world.trace.event(now, self.host, event, data)
        for action in self.core.handle(now, event):
            if self.fuse is not None:
                self.fuse -= 1
                if self.fuse < 0:
                    self.world.trace.remark(now, f"{self.host} crashes in the middle of {type(event).__name__}")
                    self.crash()
                    return
            self.carry_out(action)
        self._arm()

    def carry_out(self, action: Any) -> None:
        """Does what the core wants done."""
        raise NotImplementedError

    def crash(self) -> None:
        """Ends at once."""
        self.alive = False
        self.world.network.crash(self.host)

    def _arm(self) -> None:
        wake = self.core.wake()
        if wake is not None and wake < self._armed:
            self._armed = wake
            self.world.clock.at(wake, self._wake, wake)

    def _wake(self, armed: float) -> None:
        """Tells the time, if the core still wants to know by now: what it was to wait for may have come."""
        if armed != self._armed or not self.alive:
            return
        self._armed = inf
        wake = self.core.wake()
        if wake is not None and wake <= self.world.clock.now:
            self.tell(self._tick)
        else:
            self._arm()
