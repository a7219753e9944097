"""What is claimed of planners, by the numbers of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from tocsin.experiment.scale.rows import PlanRow
from tocsin.experiment.verdict import ClaimVerdict, judge_cases, not_measured

Instance = dict[str, PlanRow]
"""The plans of one instance by their planners."""

_SIMILAR = 0.10
_PAPERS = ("ldm", "sdm", "gsh")


def verdicts(rows: Sequence[PlanRow]) -> list[ClaimVerdict]:
    """All of them."""
    instances = list(by_instance(rows))
    return [
        lowers(instances),
        similar(instances),
        greedy_lower(instances),
        greedy_costs(instances),
        ours_lower(instances),
        ours_fewer(instances),
    ]


def by_instance(rows: Iterable[PlanRow]) -> Iterable[Instance]:
    """The plans instance by instance."""
    for _, plans in groupby(rows, key=lambda row: (row.brokers, row.subscribers, row.seed)):
        yield {plan.planner: plan for plan in plans}


def lowers(instances: Sequence[Instance]) -> ClaimVerdict:
    """LDM, SDM and GSH lower the highest load and cov."""
    claim = "LDM, SDM and GSH lower the highest load and cov (section 6)"
    plans = [plan for instance in instances for plan in instance.values() if plan.planner in _PAPERS]
    held = [plan.after < plan.before and plan.cov_after < plan.cov_before for plan in plans]
    parts = [plan.after / plan.before for plan in plans]
    return _verdict(claim, held, parts, "the highest load falls to {} of what it was")


def similar(instances: Sequence[Instance]) -> ClaimVerdict:
    """LDM and SDM come out similar."""
    claim = "LDM and SDM come out similar (6.1.3)"
    apart = _compare(instances, "ldm", "sdm", lambda one, other: one.after / other.after)
    return _verdict(
        claim,
        [abs(ratio - 1) <= _SIMILAR for ratio in apart],
        apart,
        "LDM's highest load is {} times SDM's (similar: within 10 %)",
        "SDM sends people to where their subscriptions are held; with many brokers and unequal popularity that saves "
        "incoming load which LDM pulls again",
    )


def greedy_lower(instances: Sequence[Instance]) -> ClaimVerdict:
    """A shuffle balances better than migrations."""
    claim = "GSH balances better than LDM (6.2.2, slides)"
    ratios = _compare(instances, "gsh", "ldm", lambda one, other: one.after / other.after)
    return _verdict(
        claim,
        [ratio <= 1 for ratio in ratios],
        ratios,
        "GSH's highest load is {} times LDM's (α = 0.05)",
        "GSH evens the loads out but scatters people with the same interests, so that more is pulled in all",
    )


def greedy_costs(instances: Sequence[Instance]) -> ClaimVerdict:
    """A shuffle moves more than migrations."""
    claim = "GSH moves far more subscribers than LDM, so it is for extreme imbalance only (5.3, 6.2.2)"
    ratios = _compare(instances, "gsh", "ldm", lambda one, other: one.moved / max(other.moved, 1))
    return _verdict(claim, [ratio >= 1.5 for ratio in ratios], ratios, "GSH moves {} times as many (far: 1.5 times)")


def ours_lower(instances: Sequence[Instance]) -> ClaimVerdict:
    """Ours, not the paper's: shuffle ends lower than GSH."""
    claim = "Ours: shuffle ends lower than GSH"
    ratios = _compare(instances, "shuffle", "gsh", lambda one, other: one.after / other.after)
    return _verdict(claim, [ratio < 1 for ratio in ratios], ratios, "shuffle's highest load is {} times GSH's")


def ours_fewer(instances: Sequence[Instance]) -> ClaimVerdict:
    """Ours, not the paper's: migrate reaches what GSH reaches with fewer moves."""
    claim = "Ours: migrate ends as low as GSH with at most half the moves"
    pairs = _compare(
        instances,
        "migrate to gsh",
        "gsh",
        lambda one, other: one.moved / max(other.moved, 1) if one.after <= other.after * 1.001 else 1.0,
    )
    return _verdict(claim, [ratio <= 0.5 for ratio in pairs], pairs, "{} of GSH's moves")


def _compare(
    instances: Sequence[Instance], one: str, other: str, compare: Callable[[PlanRow, PlanRow], float]
) -> list[float]:
    return [compare(instance[one], instance[other]) for instance in instances if one in instance and other in instance]


def _verdict(claim: str, held: list[bool], values: list[float], form: str, why: str = "") -> ClaimVerdict:
    if not values:
        return not_measured(claim)
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    span = low if low == high else f"{low} to {high}"
    number = f"{sum(held)} of {len(held)} instances"
    return judge_cases(claim, f"{form.format(span)}; {number}", held, why)
