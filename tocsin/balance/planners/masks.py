"""The rules of a problem as kernels want them: one mask of brokers per question."""

from __future__ import annotations

from typing import NamedTuple

from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Bools


class Masks(NamedTuple):
    """Which brokers drain, which take what those give up, and which the others' subscribers may leave and come to."""

    drained: Bools
    refuges: Bools
    sources: Bools
    destinations: Bools


def masks(problem: Problem) -> Masks:
    """What the rules of a problem say of its brokers."""
    rules, brokers = problem.rules, problem.workload.brokers
    drained = rules.must_empty(brokers)
    return Masks(drained, rules.refuges(brokers), rules.sources(brokers) & ~drained, rules.destinations(brokers))
