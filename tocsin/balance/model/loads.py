"""The load of every broker under one assignment: F = I + O, equations 1 to 5 of the paper.

I counts each BE subscription that a broker holds once, O once per subscriber there. Rates are whole bytes per second,
so that loads kept up to date by moves equal recomputed ones exactly.
"""

from __future__ import annotations

import copy

import numpy as np

from tocsin.balance.compiled import compiled
from tocsin.balance.model.workload import Bools, Floats, Int32s, Int64s, Workload


class Loads:
    """Loads that follow the assignment: a move costs as much as the subscriber has subscriptions.

    ``held[k, j]`` is n_jk, how many subscribers on broker j hold BE subscription k.
    """

    def __init__(self, workload: Workload, assignment: Int32s) -> None:
        self.workload = workload
        self.assignment = np.array(assignment, dtype=np.int32)
        self.held, self.incoming, self.outgoing = count_loads(
            workload.indptr, workload.idx, workload.rates, self.assignment, workload.brokers
        )

    @property
    def total(self) -> Int64s:
        """F: bytes per second of each broker."""
        return self.incoming + self.outgoing

    @property
    def utilisation(self) -> Floats:
        """F ÷ capacity of each broker; F where all capacities are the same."""
        return self.total * self.workload.weights

    def copy(self) -> Loads:
        """The same loads, which no longer follow the moves of these."""
        other = copy.copy(self)
        other.assignment, other.held = self.assignment.copy(), self.held.copy()
        other.incoming, other.outgoing = self.incoming.copy(), self.outgoing.copy()
        return other

    def move(self, subscriber: int, broker: int) -> None:
        """Assigns a subscriber to another broker."""
        move_subscriber(
            self.workload.indptr,
            self.workload.idx,
            self.workload.rates,
            self.assignment,
            self.held,
            self.incoming,
            self.outgoing,
            subscriber,
            broker,
        )


def mean(loads: Floats | Int64s) -> float:
    """μ, equation 8."""
    return float(np.mean(loads)) if len(loads) else 0.0


def deviation(loads: Floats | Int64s) -> float:
    """σ, equation 7."""
    return float(np.std(loads)) if len(loads) else 0.0


def cov(loads: Floats | Int64s) -> float:
    """The coefficient of variation σ ÷ μ, equation 6; 0 when nobody has any load."""
    average = mean(loads)
    return deviation(loads) / average if average else 0.0


@compiled
def count_loads(
    indptr: Int64s, idx: Int32s, rates: Int64s, assignment: Int32s, brokers: int
) -> tuple[Int32s, Int64s, Int64s]:
    """n_jk, I and O of an assignment, from nothing. Subscribers on broker −1 are nowhere and count nowhere."""
    held = np.zeros((len(rates), brokers), np.int32)
    incoming = np.zeros(brokers, np.int64)
    outgoing = np.zeros(brokers, np.int64)
    for i in range(len(assignment)):
        j = assignment[i]
        if j < 0:
            continue
        for at in range(indptr[i], indptr[i + 1]):
            k = idx[at]
            if held[k, j] == 0:
                incoming[j] += rates[k]
            held[k, j] += 1
            outgoing[j] += rates[k]
    return held, incoming, outgoing


@compiled
def move_subscriber(
    indptr: Int64s,
    idx: Int32s,
    rates: Int64s,
    assignment: Int32s,
    held: Int32s,
    incoming: Int64s,
    outgoing: Int64s,
    subscriber: int,
    broker: int,
) -> None:
    """Moves one subscriber, in place; from or to −1 means from or to nowhere."""
    source = assignment[subscriber]
    assignment[subscriber] = broker
    for at in range(indptr[subscriber], indptr[subscriber + 1]):
        k = idx[at]
        if source >= 0:
            held[k, source] -= 1
            outgoing[source] -= rates[k]
            if held[k, source] == 0:
                incoming[source] -= rates[k]
        if broker >= 0:
            if held[k, broker] == 0:
                incoming[broker] += rates[k]
            held[k, broker] += 1
            outgoing[broker] += rates[k]


@compiled
def any_load(rates: Int64s, start: Int64s, length: Int32s, pool: Int32s) -> Bools:
    """Whether a row holds anything that has a rate, for every row."""
    loaded = np.zeros(len(start), np.bool_)
    for row in range(len(start)):
        for at in range(start[row], start[row] + length[row]):
            if rates[pool[at]] > 0:
                loaded[row] = True
                break
    return loaded
