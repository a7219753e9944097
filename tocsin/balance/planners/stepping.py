"""The loop of Algorithm 1 over arrays: one move after another, until an end of it is reached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.balance.compiled import compiled
from tocsin.balance.model.loads import move_subscriber
from tocsin.balance.model.workload import Bools, Floats, Int32s, Int64s
from tocsin.balance.planners.candidates import MigrationState, by_load, by_similarity, heaviest, lightest, most_similar
from tocsin.balance.planners.masks import Masks
from tocsin.balance.planners.ranks import come, leave

BALANCED, STUCK, CAPPED = 0, 1, 2


class MigrationLimits(NamedTuple):
    """When a migration ends; ``ceiling`` is a highest load that is low enough, −1 for none."""

    alpha: float
    beta: float
    ceiling: float
    strict: bool
    similar: bool
    max_steps: int
    max_moves: int


@compiled
def run_migration(state: MigrationState, home: Int32s, masks: Masks, limits: MigrationLimits) -> tuple[int, Int64s]:
    """Drains and migrates in place. How it ended, and every single move in its order."""
    steps = np.empty((64, 3), np.int64)
    count, away, urgent = 0, 0, 0
    stays = ~masks.drained
    while True:
        mean, cov = mean_and_cov(state.loads, stays)
        urgent = next_urgent(state, masks.drained, urgent)
        if urgent >= 0:
            rank, broker = urgent, refuge(state, masks.refuges, mean, urgent, limits.similar)
        elif cov <= limits.alpha or not busy(state, stays, limits.beta) or is_low_enough(state.loads, limits.ceiling):
            return BALANCED, steps[:count].copy()
        else:
            rank, broker = choice(state, masks, mean, limits)
        if broker < 0:
            return STUCK, steps[:count].copy()
        i = state.order[rank]
        source = state.assignment[i]
        away += int(broker != home[i]) - int(source != home[i])
        if count == limits.max_steps or away > limits.max_moves:
            return CAPPED, steps[:count].copy()
        if count == len(steps):
            steps = np.concatenate((steps, np.empty_like(steps)))
        steps[count, 0], steps[count, 1], steps[count, 2] = i, source, broker
        count += 1
        shift(state, rank, broker)


@compiled
def mean_and_cov(loads: Floats, stays: Bools) -> tuple[float, float]:
    """μ and cov of the brokers that stay, equations 6 to 8; cov is 0 when nobody has any load."""
    number, total, squares = 0, 0.0, 0.0
    for j in range(len(loads)):
        if stays[j]:
            number += 1
            total += loads[j]
    mean = total / max(number, 1)
    for j in range(len(loads)):
        if stays[j]:
            squares += (loads[j] - mean) ** 2
    return mean, np.sqrt(squares / max(number, 1)) / mean if mean > 0 else 0.0


@compiled
def busy(state: MigrationState, stays: Bools, beta: float) -> bool:
    """Whether the brokers that stay have more than β bytes per second on average."""
    number, total = 0, 0
    for j in range(len(stays)):
        if stays[j]:
            number += 1
            total += state.incoming[j] + state.outgoing[j]
    return total > beta * number


@compiled
def is_low_enough(loads: Floats, ceiling: float) -> bool:
    """Whether the highest load is low enough."""
    return bool(ceiling >= 0 and loads.max() <= ceiling)


@compiled
def next_urgent(state: MigrationState, drained: Bools, rank: int) -> int:
    """The first rank from this one on that is on a draining broker or nowhere; −1 if there is none, or rank is −1."""
    if rank < 0:
        return -1
    for at in range(rank, len(state.order)):
        broker = state.assignment[state.order[at]]
        if broker < 0 or drained[broker]:
            return at
    return -1


@compiled
def refuge(state: MigrationState, refuges: Bools, mean: float, rank: int, similar: bool) -> int:
    """Where a subscriber goes that must leave: LDM's or SDM's broker, LDM's too if nobody is below the mean."""
    below = refuges & (state.loads < mean)
    if similar and below.any():
        return most_similar(state, state.order[rank], below, np.empty(len(below), np.int64))
    return lightest(state.loads, refuges)


@compiled
def choice(state: MigrationState, masks: Masks, mean: float, limits: MigrationLimits) -> tuple[int, int]:
    """The rank of the subscriber that moves next, and where to; (−1, −1) if no move is valid."""
    source = heaviest(state.loads, masks.sources)
    if source < 0:
        return -1, -1
    if limits.similar:
        return by_similarity(state, source, masks.destinations, mean, limits.strict)
    return by_load(state, source, masks.destinations, limits.strict)


@compiled
def shift(state: MigrationState, rank: int, broker: int) -> None:
    """Moves a subscriber, with all that is kept of it."""
    i = state.order[rank]
    source = state.assignment[i]
    move_subscriber(
        state.indptr, state.idx, state.rates, state.assignment, state.held, state.incoming, state.outgoing, i, broker
    )
    for at in range(state.indptr[i], state.indptr[i + 1]):
        k = state.idx[at]
        state.holders[k] += int(state.held[k, broker] == 1) - int(source >= 0 and state.held[k, source] == 0)
    if state.movable[i]:
        come(state.towers[broker], state.starts, rank)
    state.loads[broker] = (state.incoming[broker] + state.outgoing[broker]) * state.weights[broker]
    if source >= 0:
        leave(state.towers[source], state.starts, rank)
        state.loads[source] = (state.incoming[source] + state.outgoing[source]) * state.weights[source]
