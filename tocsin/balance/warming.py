"""Compiling a planner's inner loops before they are needed.

The first plan of a process compiles them, or loads what an earlier process compiled. A service does that beforehand,
in a thread of its own, and a measurement does not count it.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from tocsin.balance.book import Book
from tocsin.balance.controller import Controller
from tocsin.balance.instances.kinds import Kind, make
from tocsin.balance.observed import Observed
from tocsin.balance.planner import Planner
from tocsin.balance.problem import Problem, Rules
from tocsin.balance.thresholds import Thresholds

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


def warm_up_book() -> None:
    """Does once what is done to a Book all the time."""
    book = Book()
    brokers = [book.add_broker(), book.add_broker()]
    subscriber, subscription = book.add_subscriber(brokers[0]), book.add_subscription(1)
    book.subscribe(subscriber, [subscription])
    book.set_rates([subscription], [2])
    book.move(subscriber, brokers[1])
    book.figures()
    book.view()
    book.snapshot()
    book.unsubscribe(subscriber, [subscription])
    book.remove_subscription(subscription)
    book.remove_subscriber(subscriber)


def warm_up_rounds(migration: Planner, shuffle: Planner) -> None:
    """Decides once for each reason there is, with brokers alike and unlike, and cuts the plans down."""
    workload, assignment = make(_TINY)
    capacities = (None, np.linspace(1.0, 2.0, workload.brokers))
    any_load = Thresholds(alpha=0, cool_down=0, settle=0, max_over_mean=None, max_moves=3, min_gain=1)
    for capacity in capacities:
        book = Book.of(replace(workload, capacity=capacity), assignment)
        brokers = book.brokers.tolist()
        reported = dict.fromkeys(brokers, 0.0)
        controller = Controller(migration, shuffle, replace(any_load, gamma=1e6))
        controller.decide(0.0, Observed.of(book, reported))
        controller.decide(0.0, Observed.of(book, reported, draining=brokers[:1]))
        controller.decide(0.0, Observed.of(book, reported, joining=[brokers[int(book.figures().loads.argmin())]]))
        Controller(migration, shuffle, replace(any_load, gamma=0)).decide(0.0, Observed.of(book, reported))
