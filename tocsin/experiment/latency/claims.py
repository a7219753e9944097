"""What balancing is for: that nobody waits. The paper argues so (5.1, 5.3) and does not measure it."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.experiment.latency.rows import Delay
from tocsin.experiment.verdict import ClaimVerdict, judge, judge_cases, not_measured

NONE = "no balancing"


def verdicts(rows: Sequence[Delay]) -> list[ClaimVerdict]:
    """All of them."""
    return [overloaded(rows), relieved(rows), untouched(rows)]


def overloaded(rows: Sequence[Delay]) -> ClaimVerdict:
    """A skewed placement makes subscribers of the crowded broker wait."""
    claim = "A skewed mapping of subscribers to brokers degrades the latency that subscribers see (5.1)"
    plain = _by_utilisation(rows, NONE)
    if len(plain) < 2:
        return not_measured(claim)
    low, high = plain[min(plain)], plain[max(plain)]
    said = (
        f"p99 is {_time(low.p99)} when the mean broker has {low.utilisation:.0%} to do, and {_time(high.p99)} at "
        f"{high.utilisation:.0%}, where the crowded one has {high.hottest:.0%}"
    )
    return judge(claim, said, high.p99 > 2 * low.p99)


def relieved(rows: Sequence[Delay]) -> ClaimVerdict:
    """Balancing takes the waiting away where there is room on other brokers."""
    claim = "Balancing makes the waiting go away as long as all brokers together can carry the load"
    plain = _by_utilisation(rows, NONE)
    said, held = [], []
    for row in rows:
        before = plain.get(row.utilisation)
        if row.scheme == NONE or before is None or before.hottest <= 1 or row.utilisation >= 0.9:
            continue
        said.append(f"{row.scheme} at {row.utilisation:.0%}: p99 {_time(before.p99)} → {_time(row.p99)}")
        held.append(row.p99 < before.p99 / 2)
    return judge_cases(claim, "; ".join(said), held, "the moving average of the load follows with a delay")


def untouched(rows: Sequence[Delay]) -> ClaimVerdict:
    """Where nobody waits, balancing does not make anybody wait."""
    claim = "Where no broker is overloaded, balancing does not make notifications slower"
    plain = _by_utilisation(rows, NONE)
    pairs = [
        (row, plain[row.utilisation])
        for row in rows
        if row.scheme != NONE and row.utilisation in plain and plain[row.utilisation].hottest <= 0.9
    ]
    said = [
        f"{row.scheme} at {row.utilisation:.0%}: p99 {_time(before.p99)} → {_time(row.p99)}" for row, before in pairs
    ]
    return judge_cases(claim, "; ".join(said), [row.p99 <= before.p99 * 1.1 for row, before in pairs])


def _by_utilisation(rows: Sequence[Delay], scheme: str) -> dict[float, Delay]:
    return {row.utilisation: row for row in rows if row.scheme == scheme}


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
