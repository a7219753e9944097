"""An event loop on virtual time: a program that waits for an hour has waited a moment later.

Time passes only when nothing is left to be done at the present moment. So what programs on such a loop do does not
depend on how fast the machine is.
"""

from __future__ import annotations

import asyncio
from selectors import SelectorKey, SelectSelector
from typing import Final

from tocsin.simulate.clock import VirtualClock

_TOO_MANY: Final = 1_000_000


class VirtualEventLoop(asyncio.SelectorEventLoop):
    """Runs coroutines, and the calls of a clock in between.

    What can go wrong: nothing is left that could ever happen, or a program never waits for anything but its next turn
    (a RuntimeError says so); a program waits for a thread or a socket of its own, for which no virtual time passes: to
    it, any time may have passed meanwhile.
    """

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(ClockSelector(clock))
        self._virtual = clock
        # Times like the clock's are told apart by no less; with the system's resolution, what is due would never be.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """The clock's."""
        return self._virtual.now


class ClockSelector(SelectSelector):
    """Where an event loop would sleep, lets the clock's next call happen."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock, self._turns = clock, 0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """What is ready now; if nothing is, time passes up to the next call, or by ``timeout``."""
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            self._take_turn()
            return ready
        self._turns = 0
        due = self._clock.due
        until = self._clock.now + timeout if timeout is not None else due
        if until is None:
            raise RuntimeError("nothing is left that could happen, and the program waits")
        self._clock.run(until if due is None else min(due, until))
        return []

    def _take_turn(self) -> None:
        self._turns += 1
        if self._turns > _TOO_MANY:
            raise RuntimeError("time stands still: a program never waits for anything but its next turn")
