"""Compiling a planner's inner loops before they are needed.

The first plan of a process compiles them, or loads what an earlier process compiled. A service does that beforehand,
in a thread of its own, and a measurement does not count it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache

import numpy as np

from tocsin.balance.control.controller import Controller
from tocsin.balance.control.observation import Observation
from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.live.workload import LiveWorkload
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.planners.planner import Planner

_TINY = InstanceKind(80, 4, 60, (1, 6), popularity=0.5, skew=1.5)
_warm: set[tuple[str, str]] = set()


def warm_up(planner: Planner, like: Problem) -> float:
    """Plans a tiny problem that asks for the same things as another; how many seconds it took."""
    workload, assignment = make(_TINY)
    if like.workload.capacity is not None:
        workload = replace(workload, capacity=np.linspace(1.0, 2.0, workload.brokers))
    last = np.arange(workload.brokers) == workload.brokers - 1
    rules = MoveRules(draining=last if like.rules.draining is not None else None)
    began = time.perf_counter()
    planner.plan(replace(like, workload=workload, assignment=assignment, rules=rules))
    return time.perf_counter() - began


@cache
def warm_up_live_workload() -> None:
    """Does once in a process what is done to a live workload all the time."""
    live = LiveWorkload()
    brokers = [live.add_broker(), live.add_broker()]
    subscriber, subscription = live.add_subscriber(brokers[0]), live.add_subscription(1)
    live.subscribe(subscriber, [subscription])
    live.set_rates([subscription], [2])
    live.move(subscriber, brokers[1])
    live.figures()
    live.view()
    live.snapshot()
    live.unsubscribe(subscriber, [subscription])
    live.remove_subscription(subscription)
    live.remove_subscriber(subscriber)


def warm_up_rounds(migration: Planner, shuffle: Planner) -> None:
    """Decides once in a process for each reason there is, with brokers alike and unlike, and cuts the plans down."""
    # By their names, as a planner of one's own may be of a kind that has no hash.
    if (migration.name, shuffle.name) in _warm:
        return
    _warm.add((migration.name, shuffle.name))
    workload, assignment = make(_TINY)
    capacities = (None, np.linspace(1.0, 2.0, workload.brokers))
    any_load = Thresholds(alpha=0, cool_down=0, settle=0, max_over_mean=None, max_moves=3, min_gain=1)
    for capacity in capacities:
        live = LiveWorkload.of(replace(workload, capacity=capacity), assignment)
        brokers = live.brokers.tolist()
        reported = dict.fromkeys(brokers, 0.0)
        controller = Controller(migration, shuffle, replace(any_load, gamma=1e6))
        controller.decide(0.0, Observation.of(live, reported))
        controller.decide(0.0, Observation.of(live, reported, draining=brokers[:1]))
        controller.decide(0.0, Observation.of(live, reported, joining=[brokers[int(live.figures().loads.argmin())]]))
        Controller(migration, shuffle, replace(any_load, gamma=0)).decide(0.0, Observation.of(live, reported))
