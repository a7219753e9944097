"""Compiling a planner's inner loops before they are needed.

The first plan of a process compiles them, or loads what an earlier process compiled. A service does that beforehand,
in a thread of its own, and a measurement does not count it.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from tocsin.balance.instances.kinds import Kind, make
from tocsin.balance.planner import Planner
from tocsin.balance.problem import Problem, Rules

_TINY = Kind(80, 4, 60, (1, 6), popularity=0.5, skew=1.5)


def warm_up(planner: Planner, like: Problem) -> float:
    """Plans a tiny problem that asks for the same things as another; how many seconds it took."""
    workload, assignment = make(_TINY)
    if like.workload.capacity is not None:
        workload = replace(workload, capacity=np.linspace(1.0, 2.0, workload.brokers))
    last = np.arange(workload.brokers) == workload.brokers - 1
    rules = Rules(draining=last if like.rules.draining is not None else None)
    began = time.perf_counter()
    planner.plan(replace(like, workload=workload, assignment=assignment, rules=rules))
    return time.perf_counter() - began
