"""The bounds for the highest load that are quick to compute; plans are measured against the highest of them."""

from __future__ import annotations

import numpy as np

from tocsin.balance.bounds.holders import HolderSums
from tocsin.balance.bounds.scope import capacities, changeable, staying_subscribers
from tocsin.balance.compiled import compiled
from tocsin.balance.model.loads import count_loads
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Floats, Int64s, Workload

_PRECISION = 1e-9


def lower_bound(problem: Problem) -> float:
    """No assignment that keeps to the rules has a highest load (÷ capacity) below this."""
    part = changeable(problem)
    if not part.brokers:
        return _staying_load(problem)
    holders = HolderSums.of(part)
    return max(replication(part, holders, max(spread(part, holders), heaviest(part))), _staying_load(problem))


def spread(workload: Workload, holders: HolderSums) -> float:
    """LB1, all the load there is, spread evenly: (Σ u + Σ λ of the BE subscriptions that are held) ÷ Σ capacity.

    Proof: each uᵢ goes out of exactly one broker, and each held λₖ comes into at least one. So the loads F add up to at
    least the numerator, and the highest F ÷ capacity is at least the sum of F over the sum of capacities.
    """
    incoming = int(workload.rates[holders.number > 0].sum())
    return (int(workload.own.sum()) + incoming) / float(capacities(workload).sum())


def heaviest(workload: Workload) -> float:
    """LB2, the heaviest subscriber alone on the largest broker: 2 max uᵢ ÷ its capacity.

    Proof: the broker of subscriber i sends it uᵢ, and receives at least what it sends it, once: uᵢ again.
    """
    return 2 * int(workload.own.max(initial=0)) / float(capacities(workload).max())


def replication(workload: Workload, holders: HolderSums, above: float) -> float:
    """Forced replication: if the holders of a BE subscription do not fit on one broker, it comes in more than once.

    The least T with Σ u + Σ λₖ rₖ(T) ≤ T Σ capacity, where rₖ(T) brokers must hold k; at least ``above``.

    Proof: let the highest load be T. A broker of capacity c that holds k serves one of k's holders, so vₖ or more comes
    in, where vₖ ≥ λₖ is the least own load of a holder; at most Tc − vₖ is left to be sent to holders of k. Together
    they are sent Uₖ. So rₖ brokers hold k only if T Cᵣ − r vₖ ≥ Uₖ, where Cᵣ is the sum of the r largest capacities
    (with equal ones: r ≥ Uₖ ÷ (T − vₖ), rounded up). All loads add up to Σ u + Σ λₖ rₖ, and to at most T Σ capacity.
    A larger T needs fewer brokers and offers more, so the least T is found by halving; what is returned is a T that
    fails, or ``above``.
    """
    offered = np.sort(capacities(workload))[::-1].copy()
    used = holders.number > 0
    rates, load, least = workload.rates[used], holders.load[used], holders.least[used]
    outgoing = int(workload.own.sum())

    def fits(highest: float) -> bool:
        return bool(outgoing + needed_rate(rates, load, least, highest * offered) <= highest * offered.sum())

    if above <= 0 or fits(above):
        return above
    low, high = above, 2 * above
    while not fits(high):
        low, high = high, 2 * high
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return low


def _staying_load(problem: Problem) -> float:
    """The highest load that those make who stay where they are in every plan; others only add to it."""
    stays = staying_subscribers(problem)
    if not stays.any():
        return 0.0
    workload = problem.workload
    left = np.where(stays, problem.assignment, np.int32(-1))
    _, incoming, outgoing = count_loads(workload.indptr, workload.idx, workload.rates, left, workload.brokers)
    return float(((incoming + outgoing) * workload.weights).max())


@compiled
def needed_rate(rates: Int64s, load: Int64s, least: Int64s, offered: Floats) -> float:
    """Σ λₖ rₖ where brokers offer so much, largest first; infinite if the holders of some k do not fit at all."""
    incoming = 0.0
    for k in range(len(rates)):
        sent = 0.0
        number = 0
        while number == 0 or sent < load[k]:
            if number == len(offered) or offered[number] < least[k]:
                return np.inf
            sent += offered[number] - least[k]
            number += 1
        incoming += rates[k] * number
    return incoming
