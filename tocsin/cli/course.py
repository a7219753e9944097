"""The course of a simulated run, as ``tocsin simulate`` prints and keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tocsin.balance.model.units import rate
from tocsin.errors import InvalidError
from tocsin.simulate.queueing import quantile
from tocsin.simulate.record import RecordedDecision, Sample, SimulationRecord

_ROWS: Final = 12
_DECISIONS: Final = 12
_QUANTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class Summary(msgspec.Struct, frozen=True):
    """What ``--json`` prints. Loads are bytes per second; means are over the second half of the run.

    ``latency`` is that of deliveries in seconds, None when no broker has a capacity. ``seconds`` is how long the
    simulation took, ``peak_mib`` the most memory that the process had; all else is the same in every run.
    """

    scenario: str
    policy: str
    seed: int
    mean_cov: float
    last_cov: float
    mean_highest: float
    last_highest: float
    moves: int
    decisions: list[RecordedDecision]
    deliveries: int
    latency: dict[str, float] | None
    events: int
    fingerprint: str
    seconds: float
    peak_mib: float


def summary(record: SimulationRecord, queues: bool, seconds: float, peak_mib: float) -> Summary:
    """The figures of a run; ``queues`` says whether brokers could be overloaded."""
    half = len(record.samples) // 2
    cov, highest = record.cov, record.highest
    counts = np.sum(record.latencies, axis=0) if queues else None
    return Summary(
        scenario=record.scenario,
        policy=record.policy,
        seed=record.seed,
        mean_cov=float(cov[half:].mean()),
        last_cov=float(cov[-1]),
        mean_highest=float(highest[half:].mean()),
        last_highest=float(highest[-1]),
        moves=record.moves,
        decisions=record.decisions,
        deliveries=record.deliveries,
        latency={name: quantile(counts, part) for name, part in _QUANTILES.items()} if counts is not None else None,
        events=record.events,
        fingerprint=record.fingerprint,
        seconds=seconds,
        peak_mib=peak_mib,
    )


def render(record: SimulationRecord, figures: Summary) -> Iterator[RenderableType]:
    """The same for people."""
    yield _table(record)
    yield Text(f"{record.scenario}, {record.policy}, seed {record.seed}: {record.moves:,} moves")
    yield from _decisions(record.decisions)
    if figures.latency is not None:
        late = ", ".join(f"{name} {_seconds(value)}" for name, value in figures.latency.items())
        yield Text(f"latency of {figures.deliveries:,} deliveries: {late}")
    events = f"{figures.deliveries:,} deliveries, {figures.events:,} events, " if figures.events else ""
    took = f"{figures.seconds:.1f} s, {figures.peak_mib:,.0f} MiB"
    yield Text(f"{events}{took}" + (f"; fingerprint {figures.fingerprint}" if figures.fingerprint else ""))


def keep(path: Path, record: SimulationRecord) -> None:
    """Writes all of a record, with cov and the highest load at each sample, as one JSON object."""
    whole = {**asdict(record), "cov": record.cov, "highest": record.highest}
    try:
        path.write_bytes(msgspec.json.encode(whole, enc_hook=_plain))
    except OSError as error:
        raise InvalidError(f"{path}: cannot be written: {error.strerror}") from None


def _table(record: SimulationRecord) -> Table:
    table = Table(title="Loads are F = I + O of a broker")
    for column in ("minute", "cov", "highest load", "mean load", "online", "most on one", "moves"):
        table.add_column(column, justify="right")
    chosen = np.unique(np.linspace(0, len(record.samples) - 1, _ROWS).astype(int)).tolist()
    cov, highest, loads = record.cov, record.highest, record.loads
    for number in chosen:
        sample: Sample = record.samples[number]
        table.add_row(
            f"{sample.at / 60:.1f}",
            f"{cov[number]:.3f}",
            rate(float(highest[number])),
            rate(float(loads[number].mean())),
            f"{sum(sample.online):,}",
            f"{max(sample.subscribers):,}",
            f"{sample.moves:,}",
        )
    return table


def _decisions(decisions: list[RecordedDecision]) -> Iterator[Text]:
    """What was decided; of many, the first ones."""
    for decision in decisions[:_DECISIONS]:
        yield Text(f"minute {decision.at / 60:.1f}: {decision.stage}, {decision.moves:,} moves: {decision.reason}")
    if len(decisions) > _DECISIONS:
        yield Text(f"… and {len(decisions) - _DECISIONS:,} more decisions; --out keeps all of them")
    if not decisions:
        yield Text("nothing was decided")


def _seconds(value: float) -> str:
    return f"{value:,.1f} s" if value >= 1 else f"{value * 1000:,.1f} ms"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise NotImplementedError
