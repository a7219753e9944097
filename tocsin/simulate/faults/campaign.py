"""Many schedules, on as many processes as wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from multiprocessing import get_context
from typing import Final

from tocsin.simulate.faults.schedule import Schedule, ScheduleOutcome
from tocsin.simulate.overlay.schedule import OverlaySchedule
from tocsin.simulate.slices.schedule import SliceSchedule

_AT_ONCE = 5


class Subject(StrEnum):
    """What is broken by schedules."""

    BROKERS = "brokers"
    OVERLAY = "overlay"
    SLICES = "slices"


@dataclass
class CampaignResult:
    """What came of all schedules so far."""

    schedules: int = 0
    events: int = 0
    notes: int = 0
    moves: int = 0
    faults: int = 0
    failed: list[ScheduleOutcome] = field(default_factory=list)
    _fingerprints: list[str] = field(default_factory=list)

    def add(self, outcome: ScheduleOutcome) -> None:
        """One more; in the order of the seeds."""
        self.schedules += 1
        self.events += outcome.events
        self.notes += outcome.notes
        self.moves += outcome.moves
        self.faults += outcome.faults
        self._fingerprints.append(outcome.fingerprint)
        if outcome.wrong:
            self.failed.append(outcome)

    @property
    def fingerprint(self) -> str:
        """The same whenever the same seeds are run on the same code."""
        return blake2b("".join(self._fingerprints).encode(), digest_size=8).hexdigest()


def run_schedules(
    first: int, count: int, jobs: int = 1, subject: Subject = Subject.BROKERS
) -> Iterator[ScheduleOutcome]:
    """The outcomes of ``count`` schedules from seed ``first`` on, in order."""
    run, seeds = RUNS[subject], range(first, first + count)
    if jobs == 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(min(jobs, count), mp_context=get_context("spawn")) as pool:
        yield from pool.map(run, seeds, chunksize=_AT_ONCE)


def run_schedule(seed: int, show: Callable[[str], None] | None = None) -> ScheduleOutcome:
    """Runs one schedule. A core that raises an exception fails its schedule."""
    return _run(Schedule(seed, show), seed)


def run_overlay_schedule(seed: int, show: Callable[[str], None] | None = None) -> ScheduleOutcome:
    """The same for the content-based overlay."""
    return _run(OverlaySchedule(seed, show), seed)


def run_slice_schedule(seed: int, show: Callable[[str], None] | None = None) -> ScheduleOutcome:
    """The same for processing nodes that share slices."""
    return _run(SliceSchedule(seed, show), seed)


RUNS: Final = {
    Subject.BROKERS: run_schedule,
    Subject.OVERLAY: run_overlay_schedule,
    Subject.SLICES: run_slice_schedule,
}


def _run(schedule: Schedule | OverlaySchedule | SliceSchedule, seed: int) -> ScheduleOutcome:
    try:
        return schedule.run()
    except Exception as error:
        trace = schedule.system.trace
        what = f"{type(error).__name__}: {error}"
        return ScheduleOutcome(seed, trace.fingerprint, trace.events, 0, 0, 0, [what])
