"""What a simulation leaves: time series per broker, decisions and latencies."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tocsin.balance.model.loads import cov
from tocsin.balance.model.workload import Floats


@dataclass(frozen=True)
class RecordedDecision:
    """What the controller decided: when, which stage, how many moves, and why."""

    at: float
    stage: str
    moves: int
    reason: str


@dataclass
class Sample:
    """One moment. Lists have one entry per broker; rates are bytes per second.

    ``incoming`` and ``outgoing`` are as brokers account them (moving averages), ``brought`` and ``delivered`` as they
    were since the last sample; what is sent counts when it is queued, and ``backlog`` are the bytes that have not left.
    ``moves`` counts from the beginning.
    """

    at: float
    subscribers: list[int]
    online: list[int]
    incoming: list[float]
    outgoing: list[float]
    brought: list[float]
    delivered: list[float]
    backlog: list[float]
    moves: int


@dataclass
class SimulationRecord:
    """A whole run."""

    scenario: str
    policy: str
    seed: int
    brokers: list[str]
    samples: list[Sample] = field(default_factory=list)
    decisions: list[RecordedDecision] = field(default_factory=list)
    latencies: list[Floats] = field(default_factory=list)
    deliveries: int = 0
    events: int = 0
    fingerprint: str = ""

    def series(self, name: str) -> Floats:
        """A column of the samples: a row per sample, and a column per broker where there is one for each."""
        return np.array([getattr(sample, name) for sample in self.samples], np.float64)

    @property
    def loads(self) -> Floats:
        """F = I + O as accounted."""
        return self.series("incoming") + self.series("outgoing")

    @property
    def cov(self) -> Floats:
        """The coefficient of variation of the loads, at each sample."""
        return np.array([cov(row) for row in self.loads])

    @property
    def highest(self) -> Floats:
        """The highest load, at each sample."""
        return np.array([row.max(initial=0.0) for row in self.loads])

    @property
    def moves(self) -> int:
        """How many moves were made in all."""
        return self.samples[-1].moves if self.samples else 0
