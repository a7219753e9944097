"""The bound that plans are measured against: the highest of those that are quick to compute."""

from __future__ import annotations

import numpy as np

from tocsin.balance.bounds.heaviest import heaviest
from tocsin.balance.bounds.holders import HolderSums
from tocsin.balance.bounds.replication import replication
from tocsin.balance.bounds.scope import changeable, staying_subscribers
from tocsin.balance.bounds.spread import spread
from tocsin.balance.model.loads import count_loads
from tocsin.balance.model.problem import Problem


def lower_bound(problem: Problem) -> float:
    """No assignment that keeps to the rules has a highest load (÷ capacity) below this."""
    part = changeable(problem)
    if not part.brokers:
        return _settled(problem)
    holders = HolderSums.of(part)
    return max(replication(part, holders, max(spread(part, holders), heaviest(part))), _settled(problem))


def _settled(problem: Problem) -> float:
    """The highest load that those make who stay where they are in every plan; others only add to it."""
    stays = staying_subscribers(problem)
    if not stays.any():
        return 0.0
    workload = problem.workload
    left = np.where(stays, problem.assignment, np.int32(-1))
    _, incoming, outgoing = count_loads(workload.indptr, workload.idx, workload.rates, left, workload.brokers)
    return float(((incoming + outgoing) * workload.weights).max())
