"""Problems small enough to be followed by hand."""

from __future__ import annotations

import numpy as np

from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.model.workload import Bools, Workload


def example(
    rows: list[list[int]],
    rates: list[int],
    brokers: int,
    now: list[int],
    *,
    capacity: list[float] | None = None,
    rules: MoveRules | None = None,
    target: float | None = None,
    max_moves: int | None = None,
) -> Problem:
    """A problem of subscribers that hold these rows of BE subscriptions and are on these brokers now."""
    workload = Workload(
        indptr=np.cumsum([0, *map(len, rows)]).astype(np.int64),
        idx=np.array([k for row in rows for k in row], np.int32),
        rates=np.array(rates, np.int64),
        brokers=brokers,
        capacity=None if capacity is None else np.array(capacity),
    )
    return Problem(workload, np.array(now, np.int32), rules or MoveRules(), target=target, max_moves=max_moves)


def mask(*values: int) -> Bools:
    """A mask from ones and zeros."""
    return np.array(values, np.bool_)
