"""Taking overloaded brokers below a limit with few moves, heaviest first; and taking back what need not have moved."""

from __future__ import annotations

import numpy as np

from tocsin.balance.compiled import compiled
from tocsin.balance.model.workload import Floats, Int64s
from tocsin.balance.refine.freedom import Freedom, may_go
from tocsin.balance.refine.state import RefinementState, SubscriptionRows, missing, needs, transfer


@compiled
def evict(rows: SubscriptionRows, state: RefinementState, freedom: Freedom, budget: int) -> int:
    """Empties draining brokers, heaviest subscribers first, each to where the resulting load is least. Returns how many
    of at most ``budget`` moved."""
    leaving = freedom.free[freedom.evicted[freedom.free]]
    leaving = leaving[np.argsort(-rows.own[leaving], kind="mergesort")]
    need = np.empty(len(state.load))
    moved = 0
    for i in leaving:
        if freedom.home[i] != state.assignment[i] or moved == budget:
            continue
        needs(rows, state, i, need)
        best, where = np.inf, -1
        for j in range(len(need)):
            after = (state.load[j] + rows.own[i] + need[j]) * state.weight[j]
            if after < best and may_go(freedom, i, j):
                best, where = after, j
        transfer(rows, state, i, where)
        moved += 1
    return moved


@compiled
def shed(
    rows: SubscriptionRows, state: RefinementState, freedom: Freedom, limit: float, ceiling: float, budget: int
) -> int:
    """Moves subscribers off brokers above ``limit`` to where they add least. They themselves stay below it then, and
    nothing else rises above ``ceiling``.

    Those who are away from home go first, for they cost no further move; then by what their leaving takes away at
    most, uᵢ + Σ λₖ ÷ n_bk, descending. Returns how many of at most ``budget`` newly left home.
    """
    need = np.empty(len(state.load))
    moved = 0
    above = np.flatnonzero(state.load * state.weight > limit)
    ceilings = np.full(len(state.load), ceiling)
    ceilings[above] = limit
    for j in above[np.argsort(-state.load[above] * state.weight[above], kind="mergesort")]:
        for i in _leaving_order(rows, state, freedom, j):
            if state.load[j] * state.weight[j] <= limit:
                break
            leaves = state.assignment[i] == freedom.home[i]
            if leaves and moved == budget:
                continue
            where = _refuge(rows, state, freedom, i, ceilings, need)
            if where >= 0:
                transfer(rows, state, i, where)
                moved += 1 if leaves else 0
    return moved


@compiled
def _leaving_order(rows: SubscriptionRows, state: RefinementState, freedom: Freedom, broker: int) -> Int64s:
    """Who may leave a broker, in the order in which ``shed`` asks them."""
    here = freedom.free[state.assignment[freedom.free] == broker]
    rank = np.empty(len(here))
    for place in range(len(here)):
        i = here[place]
        takes = rows.own[i]
        for at in range(rows.indptr[i], rows.indptr[i + 1]):
            k = rows.idx[at]
            takes += rows.rates[k] / state.held[k, broker]
        rank[place] = -takes if freedom.home[i] == broker else -takes - 1e18
    ranked: Int64s = here[np.argsort(rank, kind="mergesort")]
    return ranked


@compiled
def _refuge(
    rows: SubscriptionRows, state: RefinementState, freedom: Freedom, i: int, ceilings: Floats, need: Floats
) -> int:
    """The broker that would newly have to fetch least for a subscriber and stays below its ceiling, or −1."""
    needs(rows, state, i, need)
    best, where = np.inf, -1
    for j in range(len(need)):
        after = (state.load[j] + rows.own[i] + need[j]) * state.weight[j]
        # Among equals the one with most room, so that room does not run out on the first.
        cost = need[j] + 1e-6 * after
        if j != state.assignment[i] and after <= ceilings[j] and cost < best and may_go(freedom, i, j):
            best, where = cost, j
    return where


@compiled
def bring_back(rows: SubscriptionRows, state: RefinementState, freedom: Freedom, limit: float) -> int:
    """Takes subscribers back home, lightest first, where home stays within the limit. Returns how many."""
    away = freedom.free[state.assignment[freedom.free] != freedom.home[freedom.free]]
    away = away[np.argsort(rows.own[away], kind="mergesort")]
    returned = 0
    for i in away:
        home = freedom.home[i]
        if freedom.evicted[i]:
            continue
        if (state.load[home] + rows.own[i]) * state.weight[home] > limit:
            continue
        if (state.load[home] + rows.own[i] + missing(rows, state, i, home)) * state.weight[home] <= limit:
            transfer(rows, state, i, home)
            returned += 1
    return returned
