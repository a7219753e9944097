"""The bound that plans are measured against: the highest of those that are quick to compute."""

from __future__ import annotations

import numpy as np

from tocsin.balance.bounds.holders import HolderSums
from tocsin.balance.bounds.replication import replication
from tocsin.balance.bounds.scope import capacities, changeable, staying_subscribers
from tocsin.balance.bounds.spread import spread
from tocsin.balance.model.loads import count_loads
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Workload


def lower_bound(problem: Problem) -> float:
    """No assignment that keeps to the rules has a highest load (÷ capacity) below this."""
    part = changeable(problem)
    if not part.brokers:
        return _staying_load(problem)
    holders = HolderSums.of(part)
    return max(replication(part, holders, max(spread(part, holders), heaviest(part))), _staying_load(problem))


def heaviest(workload: Workload) -> float:
    """LB2, the heaviest subscriber alone on the largest broker: 2 max uᵢ ÷ its capacity.

    Proof: the broker of subscriber i sends it uᵢ, and receives at least what it sends it, once: uᵢ again.
    """
    return 2 * int(workload.own.max(initial=0)) / float(capacities(workload).max())


def _staying_load(problem: Problem) -> float:
    """The highest load that those make who stay where they are in every plan; others only add to it."""
    stays = staying_subscribers(problem)
    if not stays.any():
        return 0.0
    workload = problem.workload
    left = np.where(stays, problem.assignment, np.int32(-1))
    _, incoming, outgoing = count_loads(workload.indptr, workload.idx, workload.rates, left, workload.brokers)
    return float(((incoming + outgoing) * workload.weights).max())
