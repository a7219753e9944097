"""What the rules leave to a planner: which brokers can change, and who may be on them afterwards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Bools, Floats, Int32s, Workload


def on(brokers: Bools, assignment: Int32s) -> Bools:
    """Which subscribers are on one of these brokers; who is nowhere is not."""
    return brokers[assignment] & (assignment >= 0)


def emptied_brokers(problem: Problem) -> Bools:
    """Which brokers every plan leaves empty: the draining ones, unless fewer may move than are on them or nowhere."""
    drained = problem.rules.must_empty(problem.workload.brokers)
    if problem.max_moves is None or not drained.any():
        return drained
    must = drained[problem.assignment] | (problem.assignment < 0)
    return drained if np.count_nonzero(must) <= problem.max_moves else np.zeros_like(drained)


def staying_subscribers(problem: Problem) -> Bools:
    """Which subscribers stay where they are in every plan."""
    workload, rules = problem.workload, problem.rules
    stays = np.zeros(workload.subscribers, np.bool_)
    if rules.fixed is not None:
        stays |= rules.fixed & ~on(rules.must_empty(workload.brokers), problem.assignment)
    if rules.pinned is not None:
        stays |= on(rules.pinned, problem.assignment)
    return stays


def capacities(workload: Workload) -> Floats:
    """What each broker can take; 1 for all where they are the same."""
    return np.ones(workload.brokers) if workload.capacity is None else workload.capacity


def changeable(problem: Problem) -> Workload:
    """The brokers that can receive or lose load and do not end empty, and whoever is not on a pinned broker.

    Nobody comes to or leaves a pinned broker, so a plan for the whole is a plan for this part, where all rules are
    forgotten: what no assignment of the part can do, no plan can.
    """
    workload, rules = problem.workload, problem.rules
    closed = emptied_brokers(problem) | ~rules.sources(workload.brokers)
    if not closed.any():
        return workload
    part = replace(workload, brokers=int(np.count_nonzero(~closed)), capacity=capacities(workload)[~closed])
    if rules.pinned is None:
        return part
    return _rows(part, ~on(rules.pinned, problem.assignment))


def _rows(workload: Workload, kept: Bools) -> Workload:
    lengths = np.diff(workload.indptr)
    indptr = np.concatenate([[0], np.cumsum(lengths[kept])]).astype(np.int64)
    return replace(workload, indptr=indptr, idx=workload.idx[np.repeat(kept, lengths)])
