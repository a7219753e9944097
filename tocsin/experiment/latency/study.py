"""The experiment ``latency``: the simulation with brokers that can carry only so much, and queue the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from tocsin.experiment.latency.claims import verdicts
from tocsin.experiment.latency.rows import Delay
from tocsin.experiment.latency.sections import sections
from tocsin.experiment.schemes import LDM, NONE, OURS, Scheme, scheme
from tocsin.experiment.series.simulator import simulate_run
from tocsin.experiment.study import ReportSection, StudyData, Tell
from tocsin.experiment.table import Row
from tocsin.experiment.verdict import ClaimVerdict
from tocsin.simulate.queueing import quantile
from tocsin.simulate.record import SimulationRecord
from tocsin.simulate.scenario import Scenario
from tocsin.simulate.scenarios.paper import Paper, paper

UTILISATIONS: Final = (0.3, 0.5, 0.7, 0.85, 0.95)
_SIZE: Final = Paper(subscribers=1_000, backend_subscriptions=10)
_SMALL: Final = Paper(subscribers=150, backend_subscriptions=5, seconds=300.0, subscribing=80.0)


@dataclass(frozen=True)
class Latency:
    """How long notifications take, by how much brokers have to do. One's own policies are run beside ours."""

    seed: int = 1
    quick: bool = False
    policies: Sequence[str] = ()

    name = "latency"
    title = "Delays when a broker is overloaded"
    about = (
        "The paper's simulation with a tenth of its subscribers and BE subscriptions, where every broker can send only "
        "so many bytes per second and queues the rest, first come, first served. The capacity is chosen so that the "
        "mean broker has 30 to 95 % of it to send once everybody has subscribed. With the nearest-broker placement the "
        "crowded one then has more than it can send, long before the others.\n\n"
        "A delay is how long a notification waits in its broker, over the whole run. What one execution brings is "
        "queued at once, so that even an idle broker takes a while to send it all. The paper argues that uneven loads "
        "make people wait; it does not measure it."
    )
    tables = (Delay,)

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the numbers depend on."""
        size = self._size
        return {
            "seed": self.seed,
            "quick": self.quick,
            "brokers": size.brokers,
            "subscribers": size.subscribers,
            "minutes": size.seconds / 60,
            "utilisations": list(self._parts),
        }

    @property
    def smaller(self) -> str:
        """What a quick run has less of."""
        size, full = self._size, _SIZE
        if not self.quick:
            return ""
        return (
            f"{size.subscribers:,} of {full.subscribers:,} subscribers and {size.seconds / 60:.0f} of "
            f"{full.seconds / 60:.0f} minutes"
        )

    def cells(self) -> list[str]:
        """Each utilisation with each scheme."""
        return [f"{one.title} at {_percent(part)}" for part in self._parts for one in self._schemes]

    def measure(self, cell: str, tell: Tell) -> Iterator[Row]:
        """One run."""
        title, _, percent = cell.rpartition(" at ")
        chosen = next(one for one in self._schemes if one.title == title)
        part = next(part for part in self._parts if _percent(part) == percent)
        capacity = mean_outgoing(self._scenario) / part
        limited = paper(replace(self._size, capacity=capacity), self.seed)
        yield delay(simulate_run(limited, chosen, self.seed, tell), chosen, part, capacity)

    def sections(self, data: StudyData) -> list[ReportSection]:
        """The report's parts."""
        return sections(data.of(Delay))

    def verdicts(self, data: StudyData) -> list[ClaimVerdict]:
        """The claims."""
        return verdicts(data.of(Delay))

    @cached_property
    def _schemes(self) -> list[Scheme]:
        return [NONE, LDM, OURS, *map(scheme, self.policies)]

    @cached_property
    def _scenario(self) -> Scenario:
        return paper(self._size, self.seed)

    @property
    def _parts(self) -> Sequence[float]:
        return UTILISATIONS[::2][:2] if self.quick else UTILISATIONS

    @property
    def _size(self) -> Paper:
        return _SMALL if self.quick else _SIZE


def delay(record: SimulationRecord, chosen: Scheme, part: float, capacity: float) -> Delay:
    """The delays of a run in a row."""
    counts = sum(record.latencies[1:], record.latencies[0])
    half = record.series("outgoing")[len(record.samples) // 2 :]
    return Delay(
        scheme=chosen.title,
        utilisation=part,
        capacity=capacity,
        hottest=float(half.max(axis=1).mean()) / capacity,
        p50=quantile(counts, 0.50),
        p99=quantile(counts, 0.99),
        moved=record.moves,
    )


def _percent(part: float) -> str:
    return f"{part:.0%}"


def mean_outgoing(scenario: Scenario) -> float:
    """Bytes per second that a broker sends on average in the second half, if none of them ever queues.

    By then everybody has subscribed, so it is what lines bring times how many hold them.
    """
    lines = scenario.lines
    holders = np.bincount(scenario.subscribes.line, minlength=len(lines.channel))
    periods = np.array([scenario.channels[channel].period for channel in lines.channel])
    return float((_mean_bytes(scenario) / periods * holders).sum()) / len(scenario.brokers)


def _mean_bytes(scenario: Scenario) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What an execution finds for each line, as a mean over the second half."""
    middle, end = scenario.seconds / 2, scenario.seconds
    found, since = np.array(scenario.lines.bytes), np.full(len(scenario.lines.bytes), middle)
    sums = np.zeros(len(found))
    for at, line, size in sorted(zip(scenario.rates.at, scenario.rates.line, scenario.rates.bytes, strict=True)):
        if at > middle:
            sums[line] += found[line] * (at - since[line])
            since[line] = at
        found[line] = size
    sums += found * (end - since)
    return np.asarray(sums / (end - middle))
