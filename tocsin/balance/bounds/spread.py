"""LB1: all the load there is, spread evenly."""

from __future__ import annotations

from tocsin.balance.bounds.holders import HolderSums
from tocsin.balance.bounds.scope import capacities
from tocsin.balance.model.workload import Workload


def spread(workload: Workload, holders: HolderSums) -> float:
    """(Σ u + Σ λ of the BE subscriptions that are held) ÷ Σ capacity.

    Proof: each uᵢ goes out of exactly one broker, and each held λₖ comes into at least one. So the loads F add up to at
    least the numerator, and the highest F ÷ capacity is at least the sum of F over the sum of capacities.
    """
    incoming = int(workload.rates[holders.number > 0].sum())
    return (int(workload.own.sum()) + incoming) / float(capacities(workload).sum())
