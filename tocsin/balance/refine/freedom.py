"""What a problem's rules leave free: who may move, and where to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.balance.compiled import compiled
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Bools, Floats, Int32s, Int64s


class Freedom(NamedTuple):
    """Who may move and where to. Everybody but the evicted may also stay at, or come back to, its home.

    Args:
        home: the broker of each subscriber now; −1 is nowhere.
        evicted: who must leave its home, because that is draining or nowhere.
        free: who may move, as numbers in ascending order.
        open: 1 for brokers that may receive, else 0; the second row is for the evicted.
    """

    home: Int32s
    evicted: Bools
    free: Int64s
    open: Floats


def freedom_of(problem: Problem) -> Freedom:
    """The freedom that the rules of a problem leave."""
    brokers, rules = problem.workload.brokers, problem.rules
    home = np.ascontiguousarray(problem.assignment, dtype=np.int32)
    evicted = rules.must_empty(brokers)[home] | (home < 0)
    may = rules.sources(brokers)[home]
    if rules.fixed is not None:
        may = may & ~rules.fixed
    open_ = np.stack([rules.destinations(brokers), rules.refuges(brokers)]).astype(np.float64)
    return Freedom(home, evicted, np.flatnonzero(may | evicted), open_)


def everywhere(freedom: Freedom) -> bool:
    """Whether whoever may move may move to any broker that does not drain and is not pinned."""
    return bool((freedom.open[0] == freedom.open[1]).all())


def changeable(freedom: Freedom) -> Bools:
    """Brokers that somebody may leave or come to."""
    mask = freedom.open[1] > 0.0 if freedom.evicted.any() else freedom.open[0] > 0.0
    left = freedom.home[freedom.free]
    mask[left[left >= 0]] = True
    return np.asarray(mask)


@compiled
def may_go(freedom: Freedom, subscriber: int, broker: int) -> bool:
    """Whether one who is free to move may be on a broker."""
    if freedom.evicted[subscriber]:
        return bool(freedom.open[1, broker] > 0.0)
    return bool(freedom.open[0, broker] > 0.0 or freedom.home[subscriber] == broker)
