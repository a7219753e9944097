"""The bound that plans are measured against: the highest of those that are quick to compute."""

from __future__ import annotations

import numpy as np

from tocsin.balance.bounds.heaviest import heaviest
from tocsin.balance.bounds.holders import Holders
from tocsin.balance.bounds.replication import replication
from tocsin.balance.bounds.scope import changeable, settled
from tocsin.balance.bounds.spread import spread
from tocsin.balance.loads import counted
from tocsin.balance.problem import Problem


def lower_bound(problem: Problem) -> float:
    """No assignment that keeps to the rules has a highest load (÷ capacity) below this."""
    part = changeable(problem)
    if not part.brokers:
        return _settled(problem)
    holders = Holders.of(part)
    return max(replication(part, holders, max(spread(part, holders), heaviest(part))), _settled(problem))


def _settled(problem: Problem) -> float:
    """The highest load that those make who stay where they are in every plan; others only add to it."""
    stays = settled(problem)
    if not stays.any():
        return 0.0
    workload = problem.workload
    left = np.where(stays, problem.assignment, np.int32(-1))
    _, incoming, outgoing = counted(workload.indptr, workload.idx, workload.rates, left, workload.brokers)
    return float(((incoming + outgoing) * workload.weights).max())
