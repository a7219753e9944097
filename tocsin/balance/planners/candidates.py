"""Which subscriber leaves an overloaded broker, and where it goes: the inner choice of Algorithm 1.

Both choices go through the subscribers of the broker by their own load, heaviest first, and take the first whose move
is valid: the load of its destination after the move must be below the load of its source before it. A subscriber that
is too heavy even if it brought no new incoming load is not looked at: where those end is found by bisection.

What remains to be looked at is, near balance, those whose own load fits and whose new incoming load does not. In the
worst case that is everybody on the broker at every step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.balance.compiled import compiled
from tocsin.balance.model.workload import Bools, Floats, Int32s, Int64s
from tocsin.balance.planners.ranks import Words, following


class MigrationState(NamedTuple):
    """All that a migration reads and changes, as arrays.

    Args:
        heaviness: own loads by rank.
        order: subscribers by rank.
        movable: the subscribers that are in a tower.
        loads: F of each broker times its weight.
        holders: how many brokers hold each BE subscription.
    """

    indptr: Int64s
    idx: Int32s
    rates: Int64s
    weights: Floats
    assignment: Int32s
    held: Int32s
    incoming: Int64s
    outgoing: Int64s
    loads: Floats
    holders: Int64s
    order: Int64s
    heaviness: Int64s
    movable: Bools
    towers: Words
    starts: Int64s


@compiled
def heaviest(loads: Floats, allowed: Bools) -> int:
    """The most loaded of these brokers, of equals the lower number; −1 if there are none."""
    best = -1
    for j in range(len(loads)):
        if allowed[j] and (best < 0 or loads[j] > loads[best]):
            best = j
    return best


@compiled
def lightest(loads: Floats, allowed: Bools) -> int:
    """The least loaded of these brokers, of equals the lower number; −1 if there are none."""
    best = -1
    for j in range(len(loads)):
        if allowed[j] and (best < 0 or loads[j] < loads[best]):
            best = j
    return best


@compiled
def fits(load: float, limit: float, strict: bool) -> bool:
    """Whether a destination with this load afterwards is below its source's load before."""
    return load < limit or (not strict and load == limit)


@compiled
def first_fitting(state: MigrationState, rank: int, broker: int, limit: float, strict: bool) -> int:
    """The first rank from this one on that fits on a broker, if it brings no new incoming load."""
    heaviness, weight = state.heaviness, state.weights[broker]
    total = state.incoming[broker] + state.outgoing[broker]
    low, high = rank, len(heaviness)
    if fits((total + heaviness[low]) * weight, limit, strict):
        return low
    while low < high:
        middle = (low + high) // 2
        if fits((total + heaviness[middle]) * weight, limit, strict):
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def takes(state: MigrationState, rank: int, broker: int, limit: float, strict: bool) -> bool:
    """Whether a broker's load is below the limit once the subscriber of a rank is there."""
    weight, own, i = state.weights[broker], state.heaviness[rank], state.order[rank]
    total = state.incoming[broker] + state.outgoing[broker] + own
    if fits((total + own) * weight, limit, strict):
        return True
    for at in range(state.indptr[i], state.indptr[i + 1]):
        k = state.idx[at]
        if state.held[k, broker] == 0:
            total += state.rates[k]
            if not fits(total * weight, limit, strict):
                return False
    return fits(total * weight, limit, strict)


@compiled
def by_load(state: MigrationState, source: int, allowed: Bools, strict: bool) -> tuple[int, int]:
    """LDM's choice: the rank of who moves, and the least loaded broker. (−1, −1) if no move is valid."""
    tower, starts = state.towers[source], state.starts
    rank, broker = following(tower, starts, 0), lightest(state.loads, allowed)
    if rank < 0 or broker < 0 or broker == source:
        return -1, -1
    limit = state.loads[source]
    rank = following(tower, starts, first_fitting(state, rank, broker, limit, strict))
    while rank >= 0:
        if takes(state, rank, broker, limit, strict):
            return rank, broker
        rank = following(tower, starts, rank + 1)
    return -1, -1


@compiled
def by_similarity(state: MigrationState, source: int, allowed: Bools, mean: float, strict: bool) -> tuple[int, int]:
    """SDM's choice: the rank of who moves, and the broker below the mean that shares most with it.

    (−1, −1) if no move is valid. A subscriber's only destination is the most similar one: if that cannot take it, the
    next subscriber is tried, not the next broker.
    """
    tower, starts = state.towers[source], state.starts
    below = allowed & (state.loads < mean)
    below[source] = False
    limit = state.loads[source]
    rank = first_fitting_anywhere(state, following(tower, starts, 0), below, limit, strict)
    lacking = np.empty(len(allowed), np.int64)
    while True:
        rank = following(tower, starts, rank)
        if rank < 0:
            return -1, -1
        broker = most_similar(state, state.order[rank], below, lacking)
        total = state.incoming[broker] + state.outgoing[broker] + state.heaviness[rank] + lacking[broker]
        if fits(total * state.weights[broker], limit, strict):
            return rank, broker
        rank += 1


@compiled
def first_fitting_anywhere(state: MigrationState, rank: int, allowed: Bools, limit: float, strict: bool) -> int:
    """The first rank from this one on that fits on one of these brokers; past the last if there is none."""
    first = len(state.heaviness)
    if rank < 0:
        return first
    for broker in range(len(allowed)):
        if allowed[broker]:
            first = min(first, first_fitting(state, rank, broker, limit, strict))
            if first == rank:
                break
    return first


@compiled
def most_similar(state: MigrationState, subscriber: int, allowed: Bools, lacking: Int64s) -> int:
    """Which of these brokers holds most of what the subscriber holds, by rate; of equals the less loaded, then the
    lower number. ``lacking`` is filled with the new incoming load on each broker."""
    held, loads = state.held, state.loads
    lacking[:] = 0
    for at in range(state.indptr[subscriber], state.indptr[subscriber + 1]):
        k = state.idx[at]
        if state.holders[k] == len(lacking):
            continue
        rate = state.rates[k]
        for j in range(len(lacking)):
            lacking[j] += rate if held[k, j] == 0 else 0
    best = -1
    for j in range(len(lacking)):
        if not allowed[j]:
            continue
        if best < 0 or lacking[j] < lacking[best] or (lacking[j] == lacking[best] and loads[j] < loads[best]):
            best = j
    return best
