"""The arrays that every step of a refinement works on, and the one way in which they change.

They are named tuples of plain arrays, so that compiled loops can take them whole and change them in place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.balance.compiled import compiled
from tocsin.balance.model.loads import count_loads
from tocsin.balance.model.workload import Floats, Int32s, Int64s, Workload


class SubscriptionRows(NamedTuple):
    """Who wants what: the workload's rows, with rates and own loads as floats (exact up to 2⁵³)."""

    indptr: Int64s
    idx: Int32s
    rates: Floats
    own: Floats


class RefinementState(NamedTuple):
    """Who is where, and what it makes of the brokers. ``held[k, j]`` is n_jk; ``load`` is F in bytes per second;
    ``weight`` turns it into what is compared, load ÷ capacity."""

    assignment: Int32s
    held: Int32s
    load: Floats
    weight: Floats


def subscription_rows(workload: Workload) -> SubscriptionRows:
    """The rows of a workload."""
    return SubscriptionRows(
        workload.indptr, workload.idx, workload.rates.astype(np.float64), workload.own.astype(np.float64)
    )


def refinement_state(workload: Workload, assignment: Int32s) -> RefinementState:
    """The state of an assignment, which is copied. Broker −1 is nowhere."""
    mine = np.array(assignment, dtype=np.int32)
    held, incoming, outgoing = count_loads(workload.indptr, workload.idx, workload.rates, mine, workload.brokers)
    return RefinementState(mine, held, (incoming + outgoing).astype(np.float64), workload.weights)


def copy_state(state: RefinementState) -> RefinementState:
    """The same state in arrays of its own."""
    return RefinementState(state.assignment.copy(), state.held.copy(), state.load.copy(), state.weight)


@compiled
def missing(rows: SubscriptionRows, state: RefinementState, subscriber: int, broker: int) -> float:
    """What a broker would newly have to fetch for a subscriber."""
    total = 0.0
    for at in range(rows.indptr[subscriber], rows.indptr[subscriber + 1]):
        k = rows.idx[at]
        if state.held[k, broker] == 0:
            total += rows.rates[k]
    return total


@compiled
def alone(rows: SubscriptionRows, state: RefinementState, subscriber: int) -> float:
    """What a subscriber's broker fetches for nobody else."""
    broker = state.assignment[subscriber]
    total = 0.0
    for at in range(rows.indptr[subscriber], rows.indptr[subscriber + 1]):
        k = rows.idx[at]
        if state.held[k, broker] == 1:
            total += rows.rates[k]
    return total


@compiled
def transfer(rows: SubscriptionRows, state: RefinementState, subscriber: int, broker: int) -> None:
    """Moves one subscriber; from broker −1 means from nowhere."""
    source = state.assignment[subscriber]
    state.assignment[subscriber] = broker
    shed = rows.own[subscriber]
    gained = rows.own[subscriber]
    for at in range(rows.indptr[subscriber], rows.indptr[subscriber + 1]):
        k = rows.idx[at]
        if source >= 0:
            state.held[k, source] -= 1
            if state.held[k, source] == 0:
                shed += rows.rates[k]
        if state.held[k, broker] == 0:
            gained += rows.rates[k]
        state.held[k, broker] += 1
    if source >= 0:
        state.load[source] -= shed
    state.load[broker] += gained


@compiled
def needs(rows: SubscriptionRows, state: RefinementState, subscriber: int, into: Floats) -> None:
    """``missing`` for every broker at once."""
    into[:] = 0.0
    for at in range(rows.indptr[subscriber], rows.indptr[subscriber + 1]):
        k = rows.idx[at]
        rate = rows.rates[k]
        for j in range(len(into)):
            into[j] += rate if state.held[k, j] == 0 else 0.0
