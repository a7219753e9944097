"""Best responses on a smoothed potential: every subscriber in turn goes where it costs least.

What a subscriber costs on broker j is the incoming load it adds there, smoothed, plus a penalty for the load that j
has already, plus a price if j is not its home:

    Σₖ λₖ (1 − p)^n_jk  +  uᵢ · steepness · max(0, F_j − floor)  +  price

With p = 1 the sum is exactly the incoming load that i would add. With p < 1 a BE subscription that few others hold
costs already part of its rate, so holders of the same things drift together, or drift away until nobody is left,
before any single one of them would gain by it. That is how groups move: each member makes the next one cheaper. Both
terms are differences of a potential, so that a pass cannot circle, and p grows to 1 over the passes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.balance.compiled import compiled
from tocsin.balance.model.workload import Bools, Int64s
from tocsin.balance.refine.freedom import Freedom
from tocsin.balance.refine.state import RefinementState, SubscriptionRows

Float32s = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

_FULL = 255.0  # the byte that stands for a whole rate


class Pressure(NamedTuple):
    """What drives subscribers apart, and what holds them at home.

    Args:
        steepness: what each byte per second of a broker's load (÷ capacity) above the floor costs, per byte of a
            subscriber.
        floor: loads below this cost nothing.
        price: of being away from home, in bytes per second.
    """

    steepness: float
    floor: float
    price: float


class Field(NamedTuple):
    """The smoothed cost of one more subscriber: ``pull[k, j]`` is (1 − p)^n_jk, and ``fading`` its powers.

    ``live`` tells for which k any pull is left, be it only for one of those who hold it. Pulls are bytes, in 255ths,
    because a pass is as fast as they can be read from memory; they only guide, loads stay exact.
    """

    pull: Bytes
    live: Bools
    fading: Bytes


def field_of(state: RefinementState) -> Field:
    """A field to be filled by ``sharpen``; one is enough for any number of passes."""
    return Field(np.empty(state.held.shape, np.uint8), np.empty(len(state.held), np.bool_), np.empty(64, np.uint8))


def sharpen(field: Field, state: RefinementState, p: float) -> None:
    """Fills the field for a p."""
    field.fading[:] = np.rint(_FULL * (1.0 - p) ** np.arange(len(field.fading)))
    field.fading[-1] = 0
    _fill(field, state)


@compiled
def _fill(field: Field, state: RefinementState) -> None:
    most = len(field.fading) - 1
    for k in range(field.pull.shape[0]):
        live = False
        for j in range(field.pull.shape[1]):
            number = state.held[k, j]
            field.pull[k, j] = field.fading[min(number, most)]
            live |= field.fading[min(max(number - 1, 0), most)] > 0
        field.live[k] = live


@compiled
def respond(
    rows: SubscriptionRows,
    state: RefinementState,
    field: Field,
    freedom: Freedom,
    order: Int64s,
    pressure: Pressure,
) -> int:
    """One pass of best responses over ``order``, in place. Returns how many moved."""
    price = np.float32(pressure.price)
    brokers = len(state.load)
    cost = np.empty(brokers, np.float32)
    penalty = np.empty((2, brokers), np.float32)
    for j in range(brokers):
        _penalise(penalty, state, freedom, j, pressure)
    least = np.array([penalty[0].min(), penalty[1].min()])
    moves = 0
    for i in order:
        source = state.assignment[i]
        home = freedom.home[i]
        begin, end = rows.indptr[i], rows.indptr[i + 1]
        own = np.float32(rows.own[i])
        kept, alone = _stay(rows, state, field, i)
        remains = state.load[source] - rows.own[i] - alone
        stay = np.float32(kept + own * _slope(remains * state.weight[source], pressure))
        if source != home:
            stay += price
        whose = 1 if freedom.evicted[i] else 0
        slopes = penalty[whose]
        back = np.float32(np.inf)
        if source != home and not freedom.evicted[i]:
            back = own * np.float32(_slope(state.load[home] * state.weight[home], pressure))
        if stay <= min(own * least[whose] + price, back):
            continue
        for j in range(brokers):
            cost[j] = own * slopes[j] + price
        cost[home] = back
        for at in range(begin, end):
            k = rows.idx[at]
            if field.live[k]:
                rate = np.float32(rows.rates[k] / _FULL)
                pull = field.pull[k]
                for j in range(brokers):
                    cost[j] += rate * np.float32(pull[j])
        destination = source
        best = stay
        for j in range(brokers):
            if cost[j] < best and j != source:
                best = cost[j]
                destination = j
        if destination == source:
            continue
        moves += 1
        _go(rows, state, field, i, destination)
        _penalise(penalty, state, freedom, source, pressure)
        _penalise(penalty, state, freedom, destination, pressure)
        least[0], least[1] = penalty[0].min(), penalty[1].min()
    return moves


@compiled
def _slope(load: float, pressure: Pressure) -> float:
    return pressure.steepness * max(0.0, load - pressure.floor)


@compiled
def _penalise(penalty: Float32s, state: RefinementState, freedom: Freedom, j: int, pressure: Pressure) -> None:
    slope = _slope(state.load[j] * state.weight[j], pressure)
    penalty[0, j] = slope if freedom.open[0, j] > 0.0 else np.inf
    penalty[1, j] = slope if freedom.open[1, j] > 0.0 else np.inf


@compiled
def _stay(rows: SubscriptionRows, state: RefinementState, field: Field, i: int) -> tuple[float, float]:
    """The smoothed incoming load of a subscriber where it is, and what is fetched there for it alone."""
    most = len(field.fading) - 1
    broker = state.assignment[i]
    kept, alone = 0.0, 0.0
    for at in range(rows.indptr[i], rows.indptr[i + 1]):
        k = rows.idx[at]
        if not field.live[k]:
            continue
        others = state.held[k, broker] - 1
        kept += rows.rates[k] / _FULL * field.fading[min(others, most)]
        if others == 0:
            alone += rows.rates[k]
    return kept, alone


@compiled
def _go(rows: SubscriptionRows, state: RefinementState, field: Field, i: int, destination: int) -> None:
    """``transfer`` that keeps the field up to date."""
    most = len(field.fading) - 1
    source = state.assignment[i]
    state.assignment[i] = destination
    shed, gained = rows.own[i], rows.own[i]
    for at in range(rows.indptr[i], rows.indptr[i + 1]):
        k = rows.idx[at]
        rate = rows.rates[k]
        left = state.held[k, source] - 1
        came = state.held[k, destination] + 1
        state.held[k, source] = left
        state.held[k, destination] = came
        if left == 0:
            shed += rate
        if came == 1:
            gained += rate
        field.pull[k, source] = field.fading[min(left, most)]
        field.pull[k, destination] = field.fading[min(came, most)]
        field.live[k] |= field.fading[min(max(left - 1, 0), most)] > 0
    state.load[source] -= shed
    state.load[destination] += gained
