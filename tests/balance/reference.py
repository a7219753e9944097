"""The paper's policies as plainly as they can be written: dictionaries, and every load counted anew when asked for.

They are what the compiled ones are held against, move by move.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.model.workload import Bools, Workload

Step = tuple[int, int, int]


class Brokers:
    """Who is where, and what follows from it."""

    def __init__(self, problem: Problem) -> None:
        workload, rules = problem.workload, problem.rules
        self.numbers = list(range(workload.brokers))
        self.rates: dict[int, int] = dict(enumerate(workload.rates.tolist()))
        self.weights: dict[int, float] = dict(enumerate(workload.weights.tolist()))
        self.wants = {i: set(workload.held_by(i).tolist()) for i in range(workload.subscribers)}
        self.home = dict(enumerate(problem.assignment.tolist()))
        self.where = dict(self.home)
        self.drained = chosen(rules.draining)
        self.pinned = chosen(rules.pinned)
        self.joining = chosen(rules.joining)
        self.fixed = chosen(rules.fixed)
        self.steps: list[Step] = []

    def own(self, i: int) -> int:
        return sum(self.rates[k] for k in self.wants[i])

    def holds(self, j: int) -> set[int]:
        return {k for i, at in self.where.items() if at == j for k in self.wants[i]}

    def bytes(self, j: int) -> int:
        incoming = sum(self.rates[k] for k in self.holds(j))
        return incoming + sum(self.own(i) for i, at in self.where.items() if at == j)

    def load(self, j: int) -> float:
        return self.bytes(j) * self.weights[j]

    def load_with(self, j: int, i: int) -> float:
        fresh = self.wants[i] - self.holds(j)
        return (self.bytes(j) + self.own(i) + sum(self.rates[k] for k in fresh)) * self.weights[j]

    def similarity(self, i: int, j: int) -> int:
        return sum(self.rates[k] for k in self.wants[i] & self.holds(j))

    def heaviest_first(self, subscribers: list[int]) -> list[int]:
        return sorted(subscribers, key=lambda i: (-self.own(i), i))

    def lightest(self, brokers: list[int]) -> int | None:
        return min(brokers, key=lambda j: (self.load(j), j)) if brokers else None

    @property
    def staying(self) -> list[int]:
        return [j for j in self.numbers if j not in self.drained]

    @property
    def refuges(self) -> list[int]:
        return [j for j in self.staying if j not in self.pinned]

    @property
    def destinations(self) -> list[int]:
        return [j for j in self.refuges if not self.joining or j in self.joining]

    @property
    def mean(self) -> float:
        total = 0.0
        for j in self.staying:
            total += self.load(j)
        return total / len(self.staying)

    @property
    def cov(self) -> float:
        squares = 0.0
        for j in self.staying:
            squares += (self.load(j) - self.mean) ** 2
        return math.sqrt(squares / len(self.staying)) / self.mean if self.mean else 0.0

    @property
    def away(self) -> int:
        return sum(self.where[i] != self.home[i] for i in self.where)

    def move(self, i: int, j: int) -> None:
        self.steps.append((i, self.where[i], j))
        self.where[i] = j


@dataclass(frozen=True)
class Migration:
    """LDM, or SDM if ``similar``."""

    similar: bool
    alpha: float = 0.15
    beta: float = 0.0
    strict: bool = True
    max_steps: int = 10**9

    def run(self, problem: Problem) -> tuple[str, list[Step]]:
        """How it ended, and its moves."""
        brokers = Brokers(problem)
        most = math.inf if problem.max_moves is None else problem.max_moves
        while True:
            must = [i for i, j in brokers.where.items() if j in brokers.drained]
            if not must and self._balanced(brokers):
                return "balanced" if brokers.steps else "idle", brokers.steps
            move = self._drain(brokers, must) if must else self._migrate(brokers)
            if move is None:
                return "stuck", brokers.steps
            before = dict(brokers.where)
            brokers.move(*move)
            if len(brokers.steps) > self.max_steps or brokers.away > most:
                brokers.where = before
                return "capped", brokers.steps[:-1]

    def _balanced(self, brokers: Brokers) -> bool:
        average = sum(brokers.bytes(j) for j in brokers.staying) / len(brokers.staying)
        return brokers.cov <= self.alpha or average <= self.beta

    def _drain(self, brokers: Brokers, must: list[int]) -> tuple[int, int] | None:
        i = brokers.heaviest_first(must)[0]
        below = [j for j in brokers.refuges if brokers.load(j) < brokers.mean]
        j = self._most_similar(brokers, i, below) if self.similar and below else brokers.lightest(brokers.refuges)
        return None if j is None else (i, j)

    def _migrate(self, brokers: Brokers) -> tuple[int, int] | None:
        if not brokers.refuges:
            return None
        source = max(brokers.refuges, key=lambda j: (brokers.load(j), -j))
        limit = brokers.load(source)
        here = [i for i, j in brokers.where.items() if j == source and i not in brokers.fixed]
        for i in brokers.heaviest_first(here):
            j = self._destination(brokers, i, source)
            if j is None or j == source:
                continue
            after = brokers.load_with(j, i)
            if after < limit or (not self.strict and after == limit):
                return i, j
        return None

    def _destination(self, brokers: Brokers, i: int, source: int) -> int | None:
        if not self.similar:
            return brokers.lightest(brokers.destinations)
        below = [j for j in brokers.destinations if brokers.load(j) < brokers.mean and j != source]
        return self._most_similar(brokers, i, below)

    def _most_similar(self, brokers: Brokers, i: int, among: list[int]) -> int | None:
        key = {j: (-brokers.similarity(i, j), brokers.load(j), j) for j in among}
        return min(key, key=lambda j: key[j]) if key else None


def shuffled(problem: Problem) -> dict[int, int]:
    """GSH: where everybody is afterwards."""
    brokers = Brokers(problem)
    stays = {
        i for i, j in brokers.home.items() if j in brokers.pinned or (i in brokers.fixed and j not in brokers.drained)
    }
    brokers.where = {i: j for i, j in brokers.home.items() if i in stays}
    for i in brokers.heaviest_first([i for i in brokers.home if i not in stays]):
        drains = brokers.home[i] in brokers.drained
        choices = brokers.refuges if drains else sorted({*brokers.destinations, brokers.home[i]})
        broker = brokers.lightest(choices)
        assert broker is not None
        brokers.where[i] = broker
    return brokers.where


def chosen(mask: Bools | None) -> set[int]:
    """The numbers that a mask is true of."""
    return set() if mask is None else set(np.flatnonzero(mask).tolist())


def small(seed: int, *, capacities: bool = False) -> Problem:
    """A random problem of at most 5 brokers, 24 subscribers and 12 BE subscriptions; half of them are full of ties."""
    rng = np.random.default_rng(seed)
    brokers, subscribers, subscriptions = rng.integers(1, 6), int(rng.integers(0, 25)), int(rng.integers(1, 13))
    highest = 4 if rng.random() < 0.5 else 1000
    rates = rng.integers(0, highest, subscriptions)
    rows = [rng.permutation(subscriptions)[: rng.integers(0, min(subscriptions, 6) + 1)] for _ in range(subscribers)]
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    idx = np.concatenate([*rows, np.empty(0, np.int64)]).astype(np.int32)
    capacity = rng.choice([1.0, 2.0, 3.0, 0.7], brokers) if capacities else None
    workload = Workload(indptr, idx, rates, int(brokers), capacity)
    skew = rng.dirichlet(np.full(brokers, 0.5))
    return Problem(workload, rng.choice(brokers, subscribers, p=skew).astype(np.int32))


def ruled(problem: Problem, seed: int) -> Problem:
    """The same problem with random rules and perhaps a budget. At least one broker stays open."""
    rng = np.random.default_rng(seed)
    brokers = problem.workload.brokers
    states = rng.choice(["open", "draining", "pinned", "joining"], brokers, p=[0.55, 0.15, 0.15, 0.15])
    states[rng.integers(brokers)] = "open"
    rules = MoveRules(
        draining=states == "draining",
        pinned=states == "pinned",
        joining=states == "joining",
        fixed=rng.random(problem.workload.subscribers) < 0.2,
    )
    budget = int(rng.integers(0, 12)) if rng.random() < 0.5 else None
    return replace(problem, rules=rules, max_moves=budget)
