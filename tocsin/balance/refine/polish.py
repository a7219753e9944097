"""The last word: sampled moves and swaps that take load off the hottest broker, whatever the total does.

A step is taken if both brokers end below what the hottest one had, and together are less above the goal than before.
So it cannot circle, and room below the goal is not filled beyond it.
"""

from __future__ import annotations

import numpy as np

from tocsin.balance.compiled import compiled
from tocsin.balance.model.workload import Floats
from tocsin.balance.refine.freedom import Freedom, may_go
from tocsin.balance.refine.state import RefinementState, SubscriptionRows, alone, needs, transfer

_MOVES = 24  # candidates for a move from the hottest broker, of which the cheapest is taken
_SWAPS = 20_000  # candidates for a swap before giving up, and no more than 4 for each subscriber
_DRAWS = 60  # how often is drawn for somebody on a given broker, in multiples of the number of brokers


@compiled
def cool(
    rows: SubscriptionRows, state: RefinementState, freedom: Freedom, steps: int, goal: float, leave: int, seed: int
) -> int:
    """Cools the hottest broker up to ``steps`` times, until it is at ``goal``. Returns how many steps were taken.

    No step takes more than ``leave`` subscribers away from home, less those that it brings back: 0 moves only who is
    away already, or exchanges who is; 2 moves anybody.
    """
    np.random.seed(seed)
    need = np.empty(len(state.load))
    for step in range(steps):
        hottest = int(np.argmax(state.load * state.weight))
        if state.load[hottest] * state.weight[hottest] <= goal or len(freedom.free) == 0:
            return step
        if not _move(rows, state, freedom, hottest, goal, leave, need) and not _swap(
            rows, state, freedom, hottest, goal, leave
        ):
            return step
    return steps


@compiled
def _excess(load: float, goal: float) -> float:
    return max(0.0, load - goal)


@compiled
def _leaving(freedom: Freedom, subscriber: int, source: int, destination: int) -> int:
    """1 if a move is away from home, −1 if it leads there, else 0."""
    home = freedom.home[subscriber]
    return int(source == home) - int(destination == home)


@compiled
def _draw_subscriber(state: RefinementState, freedom: Freedom, broker: int) -> int:
    """Somebody on a broker who is free to move, or −1 if nobody was found."""
    for _ in range(_DRAWS * len(state.load)):
        i = freedom.free[np.random.randint(len(freedom.free))]
        if state.assignment[i] == broker:
            return int(i)
    return -1


@compiled
def _move(
    rows: SubscriptionRows,
    state: RefinementState,
    freedom: Freedom,
    hottest: int,
    goal: float,
    leave: int,
    need: Floats,
) -> bool:
    """Of some subscribers of the hottest broker, moves the one that costs the others least per load it takes away."""
    top = state.load[hottest] * state.weight[hottest]
    best, who, where = np.inf, -1, -1
    for _ in range(_MOVES):
        i = _draw_subscriber(state, freedom, hottest)
        if i < 0:
            return False
        if freedom.home[i] == hottest and leave == 0:
            continue
        needs(rows, state, i, need)
        shed = rows.own[i] + alone(rows, state, i)
        rest = _excess(top - shed * state.weight[hottest], goal)
        for j in range(len(need)):
            now = state.load[j] * state.weight[j]
            after = now + (rows.own[i] + need[j]) * state.weight[j]
            if j == hottest or after >= top or not may_go(freedom, i, j):
                continue
            if rest + _excess(after, goal) >= top - goal + _excess(now, goal):
                continue
            cost = (need[j] + rows.own[i]) / max(shed, 1e-9)
            if cost < best:
                best, who, where = cost, i, j
    if who >= 0:
        transfer(rows, state, who, where)
    return who >= 0


@compiled
def _swap(
    rows: SubscriptionRows, state: RefinementState, freedom: Freedom, hottest: int, goal: float, leave: int
) -> bool:
    """Swaps somebody of the hottest broker for somebody else, so that both brokers are below what it was."""
    top = state.load[hottest] * state.weight[hottest]
    for _ in range(min(_SWAPS, 4 * len(freedom.free))):
        i = _draw_subscriber(state, freedom, hottest)
        other = freedom.free[np.random.randint(len(freedom.free))]
        broker = state.assignment[other]
        if i < 0:
            return False
        if _leaving(freedom, i, hottest, broker) + _leaving(freedom, other, broker, hottest) > leave:
            continue
        if broker == hottest or rows.own[other] >= rows.own[i] + alone(rows, state, i):
            continue
        eased = state.load[broker] + rows.own[i] - rows.own[other] - alone(rows, state, other)
        if eased * state.weight[broker] >= top:
            continue
        if not (may_go(freedom, i, broker) and may_go(freedom, other, hottest)):
            continue
        before = top - goal + _excess(state.load[broker] * state.weight[broker], goal)
        transfer(rows, state, i, broker)
        transfer(rows, state, other, hottest)
        here, there = state.load[hottest] * state.weight[hottest], state.load[broker] * state.weight[broker]
        if max(here, there) < top and _excess(here, goal) + _excess(there, goal) < before:
            return True
        transfer(rows, state, other, broker)
        transfer(rows, state, i, hottest)
    return False
