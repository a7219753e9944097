"""The parameters of the balancer, each with the paper's default."""

from __future__ import annotations

import msgspec

from tocsin.content.traffic import SAMPLES
from tocsin.overlay.load import Metric, Resource


class Band(msgspec.Struct, frozen=True):
    """Overload thresholds of a resource. Above ``lower`` no load is accepted, above ``higher`` balancing is invoked; in
    between neither happens."""

    lower: float = 0.9
    higher: float = 0.95


class Trigger(msgspec.Struct, frozen=True):
    """Differences to a neighbour above which balancing is invoked: of utilisation ratios, and of normalised delays."""

    ratio: float
    delay: float

    def of(self, metric: Metric) -> float:
        """The one for a metric."""
        return self.delay if metric is Metric.DELAY else self.ratio

    def times(self, factor: float) -> Trigger:
        """So many times as much."""
        return Trigger(factor * self.ratio, factor * self.delay)


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """All of them. Times are in seconds."""

    input: Band = Band()
    output: Band = Band()
    cpu: Band = Band()
    memory: Band = Band()
    local: Trigger = Trigger(0.1, 0.1)
    """Between edges."""
    between_clusters: Trigger = Trigger(0.15, 0.15)
    """Between clusters, by their averages."""
    normal_delay: float = 0.1
    """N_f of equation 1, so that differences between short delays are small."""
    stabilize_seconds: float = 30.0
    """How long a broker takes no part in balancing after a session, at least."""
    stabilize_difference: float = 0.05
    """By how much no metric may have changed between two runs of the detection, for a broker to be stable."""
    upset: float = 0.5
    """How far a session that makes one metric even may turn another one round: in parts of the trigger, or of by how
    much the first has become more even."""
    balanced: float = 0.005
    """Two brokers whose metrics differ by no more than this need exchange nothing further."""
    report_cards: int = 20_000
    """How many report cards an offloader makes at most to choose who is to go; the rest is left for the next session.
    One takes some dozens of microseconds, in which it does nothing else."""
    samples: int = SAMPLES
    """N: publications that are sampled for an estimate."""
    sampling_seconds: float = 30.0
    """T: after which time sampling ends with fewer."""

    def band(self, resource: Resource) -> Band:
        """The overload thresholds of a resource."""
        match resource:
            case Resource.INPUT:
                return self.input
            case Resource.OUTPUT:
                return self.output
            case Resource.CPU:
                return self.cpu
            case Resource.MEMORY:
                return self.memory

    def exceeds_lower(self, ratios: dict[Resource, float]) -> bool:
        """Whether no more load may be accepted."""
        return any(ratio > self.band(resource).lower for resource, ratio in ratios.items())

    def overloaded_resources(self, ratios: dict[Resource, float]) -> list[Resource]:
        """The resources that must be relieved at once."""
        return [resource for resource, ratio in ratios.items() if ratio > self.band(resource).higher]
