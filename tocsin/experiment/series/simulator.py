"""Runs of the simulator as rows."""

from __future__ import annotations

import gc
from collections.abc import Iterator

from tocsin.balance.control.thresholds import Thresholds
from tocsin.experiment.schemes import Scheme
from tocsin.experiment.series.rows import LoadRow, Moment, moment
from tocsin.experiment.study import Tell
from tocsin.simulate.policy import Policy
from tocsin.simulate.record import Sample, SimulationRecord
from tocsin.simulate.scenario import Scenario
from tocsin.simulate.simulation import Simulation

PLACEMENT = "NR"
_EVERY = 2
"""Of the simulator's samples, so many make one of ours: ten seconds."""


def simulate_run(scenario: Scenario, scheme: Scheme, seed: int, tell: Tell) -> SimulationRecord:
    """One run with everybody on the nearest broker at first."""

    def progress(seconds: float) -> None:
        tell(f"minute {seconds / 60:.0f}", seconds / scenario.seconds)

    record = Simulation(scenario, seed, policy(scheme), progress=progress).run()
    # A whole system is left of it, in circles of a gigabyte, and nothing is collected while the next one runs.
    gc.collect()
    return record


def policy(scheme: Scheme) -> Policy:
    """A scheme, as the simulator knows it."""
    thresholds = scheme.thresholds or Thresholds.product()
    return Policy("nearest", scheme.migration, scheme.shuffle, thresholds, scheme.thresholds is not None)


def rows(record: SimulationRecord, scheme: Scheme) -> Iterator[LoadRow | Moment]:
    """The course of a run."""
    for sample in record.samples[_EVERY - 1 :: _EVERY]:
        loads = list(_loads(record, sample, scheme))
        yield from loads
        yield moment(loads, sample.moves)


def _loads(record: SimulationRecord, sample: Sample, scheme: Scheme) -> Iterator[LoadRow]:
    columns = zip(record.brokers, sample.subscribers, sample.incoming, sample.outgoing, strict=True)
    for broker, subscribers, incoming, outgoing in columns:
        yield LoadRow(PLACEMENT, scheme.title, sample.at, broker, subscribers, incoming, outgoing, record.seed)
