"""How many subscribers any plan must move to bring every load down to a given one."""

from __future__ import annotations

import numpy as np

from tocsin.balance.bounds.scope import capacities, emptied_brokers, staying_subscribers
from tocsin.balance.compiled import compiled
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Floats, Int32s, Int64s

# Of a load: sums of fractions are this much too small at most, and the bound must not rise by that.
_ROUNDING = 1e-9


def moves_lower_bound(problem: Problem, highest: float, before: Loads | None = None) -> int:
    """No plan that brings every load (÷ capacity) to ``highest`` or below moves fewer subscribers.

    Where ``highest`` is out of reach, everybody who may move counts.

    Proof: let a plan move the set R away from broker b, where n of k's holders are. Broker b sends Σ uᵢ less, and λₖ
    less comes in for each k that all n holders leave; that λₖ is the sum of λₖ/n over them, so b sheds at most the sum
    over R of uᵢ + sᵢ, where sᵢ = Σ λₖ/n over what i holds. Who comes to b only adds. So b, with load F and capacity c,
    gets down to ``highest`` only if these sum up to F − c × ``highest``: at least as many leave as it takes of those
    with the largest uᵢ + sᵢ. Nobody leaves two brokers, so the numbers of all brokers add up, with all who are on
    draining ones.

    For the receivers: what is sent stays the same in all, so the loads together fall by at most the sum of sᵢ over all
    who move, and they must fall to the sum of capacities × ``highest``. If that takes more than the largest sᵢ of as
    many of each broker as must leave it anyway, it takes further subscribers, those with the largest sᵢ of the rest.

    Args:
        before: the loads now, if they are at hand.
    """
    workload = problem.workload
    before = before or Loads(workload, problem.assignment)
    closed, loose = emptied_brokers(problem), problem.rules.sources(workload.brokers)
    allowed = highest * np.where(closed, 0.0, capacities(workload))
    excess = before.total - allowed - _ROUNDING * before.total
    surplus = float(excess[loose].sum())
    if not (closed.any() or (excess[loose] > 0).any()):
        return 0
    own, shared = workload.own, shares(workload.indptr, workload.idx, workload.rates, before.assignment, before.held)
    forced, rest = 0, []
    for broker, members in _movable(problem):
        all_leave = closed[broker]
        number = len(members) if all_leave else _fewest(own[members] + shared[members], float(excess[broker]))
        ordered = np.sort(shared[members])[::-1]
        forced += number
        surplus -= float(ordered[:number].sum())
        rest.append(ordered[number:])
    return forced + _fewest(np.concatenate(rest), surplus)


def _movable(problem: Problem) -> list[tuple[int, Int64s]]:
    """Each broker that subscribers may leave, with those who may."""
    stays = staying_subscribers(problem)
    order = np.argsort(problem.assignment, kind="stable")
    order = order[~stays[order]]
    brokers = problem.workload.brokers
    edges = np.searchsorted(problem.assignment[order], np.arange(brokers + 1))
    return [(broker, order[edges[broker] : edges[broker + 1]]) for broker in range(brokers)]


def _fewest(amounts: Floats, wanted: float) -> int:
    """How many of the largest amounts it takes to sum up to what is wanted; all, if they do not."""
    if wanted <= 0:
        return 0
    sums = np.cumsum(np.sort(amounts)[::-1])
    return min(int(np.searchsorted(sums, wanted)) + 1, len(amounts))


@compiled
def shares(indptr: Int64s, idx: Int32s, rates: Int64s, assignment: Int32s, held: Int32s) -> Floats:
    """sᵢ: a subscriber's share of what comes in at its broker, λₖ by the number of holders there."""
    shared = np.zeros(len(assignment))
    for i in range(len(assignment)):
        j = assignment[i]
        if j < 0:
            continue
        for at in range(indptr[i], indptr[i + 1]):
            shared[i] += rates[idx[at]] / held[idx[at], j]
    return shared
