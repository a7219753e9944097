"""Which group goes to which broker, so that as few subscribers as possible have to move."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from tocsin.balance.model.workload import Bools, Floats, Int32s, Int64s


def relabel(groups: Int32s, home: Int32s, free: Bools, weight: Floats) -> Int32s:
    """The same groups with the brokers' numbers exchanged for maximum overlap with ``home``.

    Args:
        free: the brokers whose groups may be exchanged; only among equal weights, else their load would change.
        weight: of each broker, 1 ÷ capacity.
    """
    names = np.arange(len(weight), dtype=np.int32)
    for each in np.unique(weight[free]):
        brokers = np.flatnonzero(free & (weight == each))
        names[brokers] = brokers[_best_matching(_overlap(groups, home, brokers, len(weight)))]
    return names[groups]


def _overlap(groups: Int32s, home: Int32s, brokers: Int64s, number: int) -> Int64s:
    """How many of each group are at home on each broker."""
    somewhere = home >= 0
    places = groups[somewhere].astype(np.int64) * number + home[somewhere]
    pairs = np.bincount(places, minlength=number * number)
    return pairs.reshape(number, number)[np.ix_(brokers, brokers)]


def _best_matching(overlap: Int64s) -> Int64s:
    _, columns = linear_sum_assignment(overlap, maximize=True)
    return np.asarray(columns, np.int64)
