"""Who holds each BE subscription, summed up: all that the bounds need to know of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.balance.compiled import compiled
from tocsin.balance.model.workload import Int32s, Int64s, Workload


class HolderSums(NamedTuple):
    """For each BE subscription: how many hold it, the sum of their own loads, and the least of these.

    ``least`` is 0 for those that nobody holds.
    """

    number: Int64s
    load: Int64s
    least: Int64s

    @classmethod
    def of(cls, workload: Workload) -> HolderSums:
        """The holders in a workload."""
        return cls(*sum_holders(workload.indptr, workload.idx, workload.own, workload.subscriptions))


@compiled
def sum_holders(indptr: Int64s, idx: Int32s, own: Int64s, subscriptions: int) -> tuple[Int64s, Int64s, Int64s]:
    """Number, load and least own load of the holders of each BE subscription."""
    number = np.zeros(subscriptions, np.int64)
    load = np.zeros(subscriptions, np.int64)
    least = np.zeros(subscriptions, np.int64)
    for i in range(len(own)):
        for at in range(indptr[i], indptr[i + 1]):
            k = idx[at]
            load[k] += own[i]
            if number[k] == 0 or own[i] < least[k]:
                least[k] = own[i]
            number[k] += 1
    return number, load, least
