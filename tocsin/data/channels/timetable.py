"""When each channel runs next. Pure: told the time, and what happened.

A repetitive channel is due at the multiples of its period, counted from the epoch, so that it never drifts and channels
of the same period are due together. One that is still running when its time comes runs again at the next multiple after
it ends; the times it missed are counted. A continuous channel is due as soon as a dataset it looks for news in has
some. A failed execution is tried again after a wait that doubles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """What a channel is doing."""

    WAITING = "waiting"
    RUNNING = "running"
    FAILING = "failing"


@dataclass
class TimetableEntry:
    """A channel's place in the timetable.

    ``due`` is infinite for a continuous channel without news. ``turn`` is the multiple of its period at which a
    repetitive channel last ran, or should have; it is counted, for a quotient may fall on either side of a multiple. A
    channel that is ``held`` does not run, whatever the time.
    """

    name: str
    period: float | None
    due: float
    turn: int = 0
    state: State = State.WAITING
    held: bool = False
    poked: bool = False
    failures: int = 0
    missed: int = 0
    error: str = ""

    @property
    def ready(self) -> bool:
        """Whether it may run once it is due."""
        return self.state is not State.RUNNING and not self.held


class Timetable:
    """The channels and when they are due. Not thread-safe: the runner owns it."""

    def __init__(self, retry: float, longest_retry: float) -> None:
        self._retry, self._longest_retry = retry, longest_retry
        self._entries: dict[str, TimetableEntry] = {}

    def __getitem__(self, name: str) -> TimetableEntry:
        return self._entries[name]

    def find(self, name: str) -> TimetableEntry | None:
        """A channel's place, if it has one."""
        return self._entries.get(name)

    def add(self, name: str, period: float | None, now: float) -> None:
        """Enters a channel; a continuous one (no period) runs at once, for it may have been away."""
        entry = self._entries[name] = TimetableEntry(name, period, now)
        if period is not None:
            entry.turn = _turn(period, now)
            entry.due = _begin(period, entry.turn + 1)

    def remove(self, name: str) -> None:
        """Takes a channel out."""
        self._entries.pop(name, None)

    def poke(self, name: str, now: float) -> None:
        """There is news for a continuous channel."""
        entry = self._entries[name]
        if entry.state is State.RUNNING:
            entry.poked = True
        elif entry.state is State.WAITING:
            entry.due = min(entry.due, now)

    def is_idle(self, name: str) -> bool:
        """Whether a continuous channel has nothing to do."""
        entry = self._entries[name]
        return entry.ready and entry.state is State.WAITING and math.isinf(entry.due)

    def begin_idle(self, name: str) -> bool:
        """Whether a continuous channel has nothing to do; if so, it counts as running from now on."""
        idle = self.is_idle(name)
        if idle:
            self._entries[name].state = State.RUNNING
        return idle

    def due(self, now: float) -> list[str]:
        """The channels whose time has come; they count as running until told otherwise."""
        entries = [entry for entry in self._entries.values() if entry.ready and entry.due <= now]
        for entry in entries:
            if entry.period is not None:
                tried_again = max(entry.turn, _turn(entry.period, entry.due))
                entry.turn = tried_again if entry.state is State.FAILING else entry.turn + 1
            entry.state = State.RUNNING
        return [entry.name for entry in entries]

    def next(self) -> float:
        """When the next channel is due; infinite if none is."""
        return min((entry.due for entry in self._entries.values() if entry.ready), default=math.inf)

    def note_success(self, name: str, now: float) -> int:
        """An execution ended well; how many times it should have run meanwhile."""
        entry = self._entries.get(name)
        if entry is None:
            return 0
        entry.state, entry.failures, entry.error = State.WAITING, 0, ""
        if entry.period is None:
            entry.due, entry.poked = (now if entry.poked else math.inf), False
            return 0
        turn = max(_turn(entry.period, now), entry.turn)
        missed, entry.turn = turn - entry.turn, turn
        entry.due = _begin(entry.period, turn + 1)
        entry.missed += missed
        return missed

    def note_failure(
        self, name: str, reason: str, now: float, at_least: float = 0.0, at_most: float = math.inf
    ) -> float:
        """An execution failed; when it will be tried again, after ``at_least`` and ``at_most`` so many seconds."""
        entry = self._entries.get(name)
        if entry is None:
            return math.inf
        entry.state, entry.error, entry.poked = State.FAILING, reason, False
        wait = min(self._retry * 2**entry.failures, self._longest_retry, at_most)
        entry.due = now + max(wait, at_least)
        entry.failures = min(entry.failures + 1, 30)
        return entry.due

    def lasting(self, name: str) -> bool:
        """Whether a channel's failure is one to tell people of: not the first in a row, and then ever less often."""
        entry = self._entries.get(name)
        failures = entry.failures if entry else 0
        return failures > 1 and failures & (failures - 1) == 0


# Counted in whole microseconds: in fractions of a second, a turn's beginning could fall into the turn before.
def _turn(period: float, now: float) -> int:
    """How many whole periods have passed."""
    return round(now * 1e6) // round(period * 1e6)


def _begin(period: float, turn: int) -> float:
    """When a turn begins."""
    return turn * round(period * 1e6) / 1e6
