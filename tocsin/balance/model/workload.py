"""What is to be balanced: who wants what, how much of it there is, and what brokers can take.

The paper's words: subscriber i holds BE subscription k (y_ik), whose results come at λ_k bytes per second; broker j of
m serves the subscribers that are assigned to it (x_ij). Subscribers and BE subscriptions are numbers here; whoever
calls keeps their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tocsin.balance.compiled import compiled
from tocsin.errors import InvalidError

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Workload:
    """Subscribers × BE subscriptions in compressed rows, with rates. Nothing here says who is where.

    The BE subscriptions of subscriber i are ``idx[indptr[i]:indptr[i + 1]]``, each once.

    Args:
        rates: λ, bytes per second of each BE subscription.
        brokers: m, how many brokers there are.
        capacity: what each broker can take, in any unit; load then means load ÷ capacity. None: all the same.
        broker_locations: x and y of each broker, for placement by distance.
        subscriber_locations: x and y of each subscriber.
    """

    indptr: Int64s
    idx: Int32s
    rates: Int64s
    brokers: int
    capacity: Floats | None = None
    broker_locations: Floats | None = None
    subscriber_locations: Floats | None = None

    @property
    def subscribers(self) -> int:
        """n."""
        return len(self.indptr) - 1

    @property
    def subscriptions(self) -> int:
        """q, the number of BE subscriptions."""
        return len(self.rates)

    @cached_property
    def own(self) -> Int64s:
        """u: what each subscriber is sent, bytes per second."""
        return own_loads(self.indptr, self.idx, self.rates)

    @cached_property
    def weights(self) -> Floats:
        """What a byte per second weighs on each broker: 1 ÷ capacity, or 1 for all."""
        if self.capacity is None:
            return np.ones(self.brokers)
        return 1.0 / self.capacity

    def held_by(self, subscriber: int) -> Int32s:
        """The BE subscriptions of one subscriber."""
        return self.idx[self.indptr[subscriber] : self.indptr[subscriber + 1]]


def check(workload: Workload, assignment: Int32s) -> None:
    """Refuses a workload or an assignment that makes no sense, and says what is wrong with it."""
    _check_rows(workload)
    _check_brokers(workload)
    _check_locations(workload)
    if len(assignment) != workload.subscribers:
        raise InvalidError(f"the assignment is for {len(assignment)} subscribers, but there are {workload.subscribers}")
    if len(assignment) and not (assignment.min() >= 0 and assignment.max() < workload.brokers):
        wrong = int(np.flatnonzero((assignment < 0) | (assignment >= workload.brokers))[0])
        raise InvalidError(
            f"subscriber {wrong} is on broker {assignment[wrong]}, but the brokers are 0 to {workload.brokers - 1}"
        )


def _check_rows(workload: Workload) -> None:
    indptr, idx, rates = workload.indptr, workload.idx, workload.rates
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(idx) or (np.diff(indptr) < 0).any():
        raise InvalidError(f"indptr must begin with 0, never fall and end with the length of idx, {len(idx)}")
    if len(idx) and not (idx.min() >= 0 and idx.max() < len(rates)):
        wrong = int(idx[(idx < 0) | (idx >= len(rates))][0])
        raise InvalidError(f"idx names BE subscription {wrong}, but there are rates for 0 to {len(rates) - 1}")
    if (rates < 0).any():
        wrong = int(np.flatnonzero(rates < 0)[0])
        raise InvalidError(f"the rate of BE subscription {wrong} is {rates[wrong]}; rates must not be negative")
    repeated = first_repeated(indptr, idx, len(rates))
    if repeated >= 0:
        raise InvalidError(f"subscriber {repeated} holds a BE subscription twice; each may be in its row once")


def _check_brokers(workload: Workload) -> None:
    if workload.brokers < 1:
        raise InvalidError(f"there are {workload.brokers} brokers; there must be at least one")
    capacity = workload.capacity
    if capacity is None:
        return
    if capacity.shape != (workload.brokers,):
        raise InvalidError(f"capacity has the shape {capacity.shape}, but there are {workload.brokers} brokers")
    if not (np.isfinite(capacity).all() and (capacity > 0).all()):
        wrong = int(np.flatnonzero(~(np.isfinite(capacity) & (capacity > 0)))[0])
        raise InvalidError(f"the capacity of broker {wrong} is {capacity[wrong]}; it must be a number above 0")


def _check_locations(workload: Workload) -> None:
    for locations, number, whose in (
        (workload.broker_locations, workload.brokers, "brokers"),
        (workload.subscriber_locations, workload.subscribers, "subscribers"),
    ):
        if locations is not None and (locations.shape != (number, 2) or not np.isfinite(locations).all()):
            raise InvalidError(f"the locations of the {number} {whose} must be x and y for each, all of them numbers")


@compiled
def own_loads(indptr: Int64s, idx: Int32s, rates: Int64s) -> Int64s:
    """u: the sum of the rates of each row."""
    own = np.zeros(len(indptr) - 1, np.int64)
    for i in range(len(own)):
        for at in range(indptr[i], indptr[i + 1]):
            own[i] += rates[idx[at]]
    return own


@compiled
def first_repeated(indptr: Int64s, idx: Int32s, subscriptions: int) -> int:
    """The first subscriber whose row names a BE subscription twice, or −1."""
    last = np.full(subscriptions, -1, np.int64)
    for i in range(len(indptr) - 1):
        for at in range(indptr[i], indptr[i + 1]):
            if last[idx[at]] == i:
                return i
            last[idx[at]] = i
    return -1
