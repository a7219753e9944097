"""What each move of a plan is worth, and which to leave out when not all can stay.

A move's gain is what would be lost by leaving it out of the plan: bytes per second that then lie above the brokers'
fair share of the load, plus bytes per second that all brokers together then handle more. Seen from the plan's end a
group that moves together keeps its worth; seen from its beginning, the first of the group would only seem to cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.balance.compiled import compiled
from tocsin.balance.model.loads import Loads, move_subscriber
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Bools, Floats, Int32s, Int64s

_SHARE = 4  # of the moves that are too many, one in so many is undone before all are weighed again


class GainState(NamedTuple):
    """Loads under an assignment, as compiled functions take them. ``fair`` is each broker's fair share of the load."""

    indptr: Int64s
    idx: Int32s
    rates: Int64s
    own: Int64s
    assignment: Int32s
    held: Int32s
    incoming: Int64s
    outgoing: Int64s
    fair: Floats


def gain_state(problem: Problem, assignment: Int32s) -> GainState:
    """The state under an assignment, which it does not change. Draining brokers have no fair share of the load."""
    workload = problem.workload
    loads = Loads(workload, assignment)
    shares = 1.0 / workload.weights
    shares[problem.rules.must_empty(workload.brokers)] = 0.0
    return GainState(
        workload.indptr,
        workload.idx,
        workload.rates,
        workload.own,
        loads.assignment,
        loads.held,
        loads.incoming,
        loads.outgoing,
        shares * (float(loads.total.sum()) / shares.sum()),
    )


@compiled
def excess(state: GainState, j: int, more: int) -> float:
    """How much a broker would have above its share, with so much more load."""
    return max(0.0, float(state.incoming[j] + state.outgoing[j] + more) - float(state.fair[j]))


@compiled
def loss(state: GainState, i: int, home: int) -> float:
    """What is lost by sending a subscriber back to where it came from."""
    here = state.assignment[i]
    more, less = state.own[i], state.own[i]
    for at in range(state.indptr[i], state.indptr[i + 1]):
        k = state.idx[at]
        if state.held[k, home] == 0:
            more += state.rates[k]
        if state.held[k, here] == 1:
            less += state.rates[k]
    above = excess(state, home, more) - excess(state, home, 0) + excess(state, here, -less) - excess(state, here, 0)
    return above + float(more - less)


@compiled
def gains(state: GainState, subscribers: Int64s, homes: Int32s, stays: Bools) -> Floats:
    """The gain of each move that stays; infinite for those that are out already."""
    worth = np.full(len(subscribers), np.inf)
    for at in range(len(subscribers)):
        if stays[at]:
            worth[at] = loss(state, subscribers[at], homes[at])
    return worth


@compiled
def send(state: GainState, i: int, broker: int) -> None:
    """Moves a subscriber, in place."""
    move_subscriber(
        state.indptr, state.idx, state.rates, state.assignment, state.held, state.incoming, state.outgoing, i, broker
    )


@compiled
def undo_cheapest(state: GainState, subscribers: Int64s, homes: Int32s, stays: Bools, most: int) -> None:
    """Undoes the cheapest moves until at most ``most`` stay.

    A share of those that are too many is undone at a time, and the others weighed again, since each that goes back
    changes what they are worth.
    """
    left = int(stays.sum())
    while left > most:
        share = max(1, (left - most) // _SHARE)
        for at in np.argsort(gains(state, subscribers, homes, stays), kind="mergesort")[:share]:
            send(state, subscribers[at], homes[at])
            stays[at] = False
        left -= share


@compiled
def undo_below(state: GainState, subscribers: Int64s, homes: Int32s, stays: Bools, least: float) -> None:
    """Undoes moves, cheapest first, until each that stays gains at least ``least``."""
    undone = True
    while undone:
        undone = False
        worth = gains(state, subscribers, homes, stays)
        for at in np.argsort(worth, kind="mergesort"):
            if worth[at] >= least:
                break
            if loss(state, subscribers[at], homes[at]) < least:
                send(state, subscribers[at], homes[at])
                stays[at] = False
                undone = True


@compiled
def make_moves_below(
    state: GainState, subscribers: Int64s, destinations: Int32s, order: Int64s, weights: Floats, ceiling: float
) -> None:
    """Makes moves in this order, as long as any can be made, leaving out what would lift a load above the ceiling."""
    waiting = np.ones(len(subscribers), np.bool_)
    made = True
    while made:
        made = False
        for at in order:
            if (
                waiting[at]
                and load_with(state, subscribers[at], destinations[at]) * weights[destinations[at]] <= ceiling
            ):
                send(state, subscribers[at], destinations[at])
                waiting[at] = False
                made = True


@compiled
def load_with(state: GainState, i: int, broker: int) -> int:
    """A broker's load with a subscriber more."""
    load = int(state.incoming[broker] + state.outgoing[broker] + state.own[i])
    for at in range(state.indptr[i], state.indptr[i + 1]):
        if state.held[state.idx[at], broker] == 0:
            load += int(state.rates[state.idx[at]])
    return load
