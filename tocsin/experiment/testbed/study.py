"""The experiment ``testbed``: every placement with every scheme on real processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final

from tocsin.apps.emergency.ground import Ground, ground
from tocsin.errors import InvalidError
from tocsin.experiment.schemes import Scheme, papers_above, scheme
from tocsin.experiment.seeds import split, with_seeds
from tocsin.experiment.series.course import courses
from tocsin.experiment.series.rows import LoadRow, Moment
from tocsin.experiment.study import ReportSection, StudyData, Tell
from tocsin.experiment.table import Row
from tocsin.experiment.testbed.bed import LOCATIONS, PLACEMENTS, Bed
from tocsin.experiment.testbed.claims import verdicts
from tocsin.experiment.testbed.rows import RunSummary, RunTrouble
from tocsin.experiment.testbed.run import TestbedRun
from tocsin.experiment.testbed.sections import sections
from tocsin.experiment.testbed.soundness import sound_runs
from tocsin.experiment.verdict import ClaimVerdict

POLICIES: Final = ("none", "ldm", "sdm", "ldm+gsh", "sdm+gsh", "ours", "ldm-fine")
# What is run with some placements only. The paper tells of least-loaded placement what becomes of it by itself; and it
# takes the nearest broker to need so many moves that they tell one scheme from another.
_ONLY: Final = {"LL": ("none",)}
_ONLY_WITH: Final = {"ldm-fine": ("NR",)}
_MINUTES: Final = 30
_PEOPLE, _BROKERS = 400, 5
# What a broker handles on average once everybody has subscribed, bytes per second of the paper's time.
_SETTLED: Final = 50e3


@dataclass(frozen=True)
class Prototype:
    """The real system, 30 minutes for each cell. ``speed`` 6 makes that five.

    The paper's schemes act when the mean load is above half of what it settles at, so that a shuffle has something to
    shuffle.
    """

    seed: int = 1
    seeds: int = 1
    quick: bool = False
    placements: Sequence[str] = tuple(PLACEMENTS)
    policies: Sequence[str] = POLICIES
    speed: float = 1.0
    trace: Path | None = None
    roads: Path | None = None

    name = "testbed"
    title = "The test bed: real processes"
    about = (
        "Section 6.1 of the paper on this machine: one data cluster (Spark), one coordinator, five brokers, each a "
        "process, and 400 subscribers in a load generator on the client library. The emergency application has three "
        "datasets and seven channels that run every 10, 20 and 30 seconds; eight publishers report some 10,000 "
        "emergencies of eight types, 200 to 700 bytes each, in 30 minutes. Everybody moves through a seeded city, or "
        "that of a road map or a recorded trace, says where they are every second, logs in within the first four "
        "minutes and subscribes within the next four. The paper names logouts and unsubscriptions, and not how many: "
        "here one subscriber in four then logs out once and is back after one to three minutes, and one subscription "
        "in ten is given up.\n\n"
        "Loads are what the brokers measured, as moving averages. With a speed of s everything happens s times as "
        "fast, channels and thresholds' times too; loads are then divided by s, and locations are told once in a "
        "second of the clock, so every s seconds of the paper's. The paper had nine machines; here all processes share "
        "one, so that what is measured is how load is spread, not how much a broker can carry."
    )
    tables = (LoadRow, Moment, RunSummary, RunTrouble)

    def __post_init__(self) -> None:
        for placement in self.placements:
            if placement not in PLACEMENTS:
                raise InvalidError(f"there is no placement {placement!r}; there are {', '.join(PLACEMENTS)}")
        assert self._schemes, "unknown names are refused before anything is run"
        lasts = sum(1 for _ in islice(self._ground.positions([0]), round(self._seconds)))
        if lasts < round(self._seconds):
            raise InvalidError(
                f"{self.trace} lasts {lasts} s, and a run takes {self._seconds:.0f} s; record for longer"
            )

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the numbers depend on; which cells are run is not among it, so that a run can grow."""
        return {
            "seed": self.seed,
            "quick": self.quick,
            "speed": self._speed,
            "brokers": self._brokers,
            "subscribers": self._people,
            "minutes": self._seconds / 60,
            "β and θ of the paper's schemes": self._level,
            "locations of brokers, in parts of the city": [f"{x:g} {y:g}" for x, y in LOCATIONS[: self._brokers]],
            **{name: _fingerprint(file) for name, file in (("trace", self.trace), ("roads", self.roads)) if file},
        }

    @property
    def smaller(self) -> str:
        """What a quick run has less of, or one with a trace of few people."""
        if not self.quick and self._people == _PEOPLE:
            return ""
        fewer = f"{self._people} of {_PEOPLE} subscribers on {self._brokers} of {_BROKERS} brokers"
        return f"{fewer} for {self._seconds / 60:.0f} minutes"

    def cells(self) -> list[str]:
        """Placement by placement, scheme by scheme; all of them again with every further seed."""
        names = [
            f"{placement} + {one.title}"
            for placement in self.placements
            for policy, one in self._schemes.items()
            if policy in _ONLY.get(placement, (policy,)) and placement in _ONLY_WITH.get(policy, (placement,))
        ]
        return with_seeds(names, self.seed, self.seeds)

    def measure(self, cell: str, tell: Tell) -> Iterator[Row]:
        """One run of the whole system."""
        name, seed = split(cell, self.seed)
        placement, _, title = name.partition(" + ")
        chosen = next(one for one in self._schemes.values() if one.title == title)
        bed = Bed(placement, chosen, self._brokers, self._speed, self._ground.low, self._ground.high)
        trace, roads = (str(file) if file else None for file in (self.trace, self.roads))
        run = TestbedRun(bed, self._people, self._seconds, seed, tell, trace, roads)
        run.carry_out()
        yield from run.rows

    def sections(self, data: StudyData) -> list[ReportSection]:
        """The report's parts."""
        return sections(courses(data), data.of(RunSummary))

    def verdicts(self, data: StudyData) -> list[ClaimVerdict]:
        """The claims."""
        summaries = data.of(RunSummary)
        return verdicts(sound_runs(courses(data), summaries), summaries)

    @cached_property
    def _schemes(self) -> dict[str, Scheme]:
        return {name: papers_above(scheme(name), self._level) for name in self.policies}

    @property
    def _level(self) -> float:
        return _SETTLED / 2 * (self._people / _PEOPLE) / (self._brokers / _BROKERS)

    @cached_property
    def _ground(self) -> Ground:
        return ground(self.seed, None, self.roads, self.trace)

    @property
    def _people(self) -> int:
        wanted = 40 if self.quick else _PEOPLE
        return min(wanted, len(self._ground.people)) if self.trace else wanted

    @property
    def _brokers(self) -> int:
        return 3 if self.quick else _BROKERS

    @property
    def _seconds(self) -> float:
        return 300.0 if self.quick else _MINUTES * 60.0

    @property
    def _speed(self) -> float:
        return max(self.speed, 12.0) if self.quick else self.speed


def _fingerprint(file: Path) -> str:
    """A file by its name and what is in it: of another place it is the same, and with other content it is not."""
    return f"{file.name}, sha256 {sha256(file.read_bytes()).hexdigest()[:16]}"
