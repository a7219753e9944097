"""What a plan says to a person: a line for each broker, and a few sentences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tocsin.balance.model.plan import LoadFigures, Plan, PlanStatus, Reason
from tocsin.balance.model.units import rate

_WHY = {
    Reason.OVERLOAD: "because their broker is above the others",
    Reason.SHARING: "to where their subscriptions are held already",
    Reason.DRAIN: "because their broker is being emptied",
    Reason.JOIN: "to a new broker",
    Reason.SHUFFLE: "because everybody is placed anew",
    Reason.ROOM: "to make room for heavier ones",
}
_ENDS = {
    PlanStatus.BALANCED: "Its goal is reached.",
    PlanStatus.STUCK: "Its goal is not reached: the policy knows no further move.",
    PlanStatus.CAPPED: "Its goal is not reached: no more moves are allowed at once.",
    PlanStatus.IDLE: "There was nothing to do.",
}


@dataclass(frozen=True)
class BrokerChange:
    """A broker before and after a plan. Loads are utilisations where capacities differ, the parts bytes per second."""

    broker: int
    load_before: float
    load_after: float
    incoming_before: int
    incoming_after: int
    outgoing_before: int
    outgoing_after: int
    left: int
    came: int


def broker_changes(plan: Plan) -> list[BrokerChange]:
    """A line for each broker, in their order."""
    brokers = len(plan.before.loads)
    columns = (
        plan.before.loads,
        plan.after.loads,
        plan.before.incoming,
        plan.after.incoming,
        plan.before.outgoing,
        plan.after.outgoing,
        np.bincount(plan.moves.source[plan.moves.source >= 0], minlength=brokers),
        np.bincount(plan.moves.destination, minlength=brokers),
    )
    return [
        BrokerChange(broker, *row)
        for broker, row in enumerate(zip(*(column.tolist() for column in columns), strict=True))
    ]


def sentences(plan: Plan) -> list[str]:
    """What a plan does and what comes of it, for people."""
    if not len(plan.moves):
        return [f"{plan.planner} moves nobody.", _ENDS[plan.status]]
    return [
        f"{plan.planner} moves {len(plan.moves):,} of {len(plan.assignment):,} subscribers: {_reasons(plan)}. "
        f"No plan that ends as low moves fewer than {plan.moves_lower_bound:,}.",
        f"The highest load {_change(plan.before.max, plan.after.max, plan.before)}; that is {plan.ratio:.3f} times "
        "what no assignment can be below.",
        f"cov goes from {plan.before.cov:.3f} to {plan.after.cov:.3f}, what all brokers together handle from "
        f"{rate(plan.before.total)} to {rate(plan.after.total)}.",
        _ENDS[plan.status],
    ]


def load(value: float, figures: LoadFigures) -> str:
    """A load of these figures: a rate, or where capacities differ a plain number."""
    plain = np.array_equal(figures.loads, figures.incoming + figures.outgoing)
    return rate(value) if plain else f"{value:.3g}"


def _change(before: float, after: float, figures: LoadFigures) -> str:
    if after == before:
        return f"stays at {load(after, figures)}"
    return f"{'falls' if after < before else 'rises'} from {load(before, figures)} to {load(after, figures)}"


def _reasons(plan: Plan) -> str:
    counted = Counter(plan.moves.reason).most_common()
    return ", ".join(f"{number:,} {_WHY[reason]}" for reason, number in counted)
