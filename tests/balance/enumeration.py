"""Tiny problems whose every assignment can be looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.model.workload import Bools, Floats, Int32s, Workload

_Array = npt.NDArray[Any]


def tiny(seed: int, *, capacities: bool = False, most: int = 7) -> tuple[Workload, Int32s]:
    """At most ``most`` subscribers, three brokers and five BE subscriptions, some of them held by nobody or silent."""
    rng = np.random.default_rng(seed)
    brokers, subscribers, subscriptions = int(rng.integers(1, 4)), int(rng.integers(1, most + 1)), 5
    rows = [np.flatnonzero(rng.random(subscriptions) < rng.choice([0.2, 0.5, 0.9])) for _ in range(subscribers)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    rates = rng.choice([0, 1, 2, 5, 30], subscriptions).astype(np.int64)
    capacity = rng.choice([0.5, 1.0, 3.0], brokers) if capacities else None
    workload = Workload(indptr, np.concatenate(rows).astype(np.int32), rates, brokers, capacity)
    return workload, rng.integers(0, brokers, subscribers).astype(np.int32)


def ruled(seed: int) -> Problem:
    """A tiny problem with capacities, rules and perhaps a budget; its brokers are never all draining or pinned."""
    workload, assignment = tiny(seed, capacities=seed % 2 == 0, most=6)
    rng = np.random.default_rng([seed, 1])
    state = rng.choice(["open", "draining", "pinned", "joining"], workload.brokers, p=[0.4, 0.2, 0.2, 0.2])
    state[rng.integers(workload.brokers)] = "open"
    rules = MoveRules(
        draining=state == "draining",
        pinned=state == "pinned",
        joining=state == "joining",
        fixed=rng.random(workload.subscribers) < 0.2,
    )
    budget = int(rng.integers(workload.subscribers + 1)) if seed % 3 == 0 else None
    return Problem(workload, assignment, rules, max_moves=budget)


def assignments(problem: Problem) -> _Array:
    """Every assignment that a plan may end with. Where the budget does not suffice, draining brokers may keep some."""
    workload, rules, now = problem.workload, problem.rules, problem.assignment
    every = _every(workload)
    drained = rules.must_empty(workload.brokers)
    leaves = drained[now]
    moved = every != now
    allowed = np.where(leaves, rules.refuges(workload.brokers)[every], rules.destinations(workload.brokers)[every])
    stays = ~rules.sources(workload.brokers)[now]
    if rules.fixed is not None:
        stays |= rules.fixed & ~leaves
    kept = (~moved | (allowed & ~stays)).all(axis=1)
    if problem.max_moves is not None:
        kept &= moved.sum(axis=1) <= problem.max_moves
    if problem.max_moves is None or problem.max_moves >= leaves.sum():
        kept &= ~drained[every].any(axis=1)
    return np.asarray(every[kept])


def highest(workload: Workload, every: _Array) -> Floats:
    """The highest load (÷ capacity) of each assignment."""
    held = np.zeros((workload.subscribers, workload.subscriptions), np.int64)
    for i in range(workload.subscribers):
        held[i, workload.held_by(i)] = 1
    loads = [_load(workload, held, every == broker) for broker in range(workload.brokers)]
    return np.asarray((np.stack(loads, axis=1) * workload.weights).max(axis=1))


def _load(workload: Workload, held: _Array, here: Bools) -> _Array:
    number = here.astype(np.int64) @ held
    return np.asarray(((number > 0) + number) @ workload.rates)


def _every(workload: Workload) -> _Array:
    shape = (workload.brokers,) * workload.subscribers
    return np.stack(np.unravel_index(np.arange(workload.brokers**workload.subscribers), shape), axis=1)
