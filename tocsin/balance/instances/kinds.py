"""Seeded instances of the kinds that planners are measured on.

P is the paper's prototype, S its simulation, L and XL what a large city would bring; SC and LC are S and L with
communities, groups of people who are interested in the same things.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tocsin.balance.compiled import compiled
from tocsin.balance.model.workload import Floats, Int32s, Int64s, Workload
from tocsin.errors import InvalidError

_COMMUNITY = 4  # a community's BE subscriptions, in multiples of the most that a member holds
_ATTEMPTS = 20  # draws for each BE subscription of a row; a row that repeats itself for ever stays shorter


@dataclass(frozen=True)
class InstanceKind:
    """The make of an instance.

    Args:
        each: each subscriber holds at least and at most so many BE subscriptions.
        popularity: exponent of the Zipf law of the BE subscriptions' popularity; 0 is uniform.
        periods: of the channels, in seconds; each has as many of the BE subscriptions. What an execution finds has
            normally distributed bytes, so the rate of a BE subscription is that by its channel's period.
        communities: groups of interest; 0 for none.
        local: how much of what a member of a community holds is its community's.
        skew: exponent of the Zipf law of the brokers' shares of the subscribers at the start.
        together: how many of a community begin on the same broker, because they live close to each other.
    """

    subscribers: int
    brokers: int
    subscriptions: int
    each: tuple[int, int]
    popularity: float = 0.0
    periods: tuple[int, ...] = (5, 10, 20, 30, 60)
    communities: int = 0
    local: float = 1.0
    skew: float = 0.7
    together: float = 0.9


KINDS = {
    "P": InstanceKind(400, 5, 620, (1, 10), popularity=0.3, periods=(10, 20, 10, 10, 30, 10, 30), skew=1.0),
    "S": InstanceKind(10_000, 10, 1_000, (10, 30)),
    "SC": InstanceKind(10_000, 10, 1_000, (10, 30), communities=50),
    "L": InstanceKind(100_000, 50, 20_000, (10, 30), popularity=1.05, skew=0.8),
    "LC": InstanceKind(100_000, 50, 20_000, (10, 30), popularity=1.0, communities=500, local=0.9, skew=0.8),
    "XL": InstanceKind(1_000_000, 100, 100_000, (10, 30), popularity=1.05, skew=0.8),
}


def generate(kind: str, seed: int = 0) -> tuple[Workload, Int32s]:
    """An instance of a kind by its name, and who is where at the start. The same seed makes the same instance."""
    if kind not in KINDS:
        raise InvalidError(f"there is no kind of instance {kind!r}; the kinds are {', '.join(KINDS)}")
    return make(KINDS[kind], seed)


def make(kind: InstanceKind, seed: int = 0) -> tuple[Workload, Int32s]:
    """An instance of this make, and who is where at the start."""
    rng = np.random.default_rng(seed)
    found = np.maximum(rng.normal(20_000, 6_000, kind.subscriptions), 1_000)
    rates = (found / np.resize(kind.periods, kind.subscriptions)).astype(np.int64)
    counts = rng.integers(kind.each[0], kind.each[1] + 1, kind.subscribers)
    member = rng.integers(0, max(kind.communities, 1), kind.subscribers)
    indptr, idx = _rows(kind, np.minimum(counts, kind.subscriptions), member, rng)
    return Workload(indptr, idx, rates, kind.brokers), _start(kind, member, rng)


def _start(kind: InstanceKind, member: Int64s, rng: np.random.Generator) -> Int32s:
    shares = _zipf(kind.brokers, kind.skew)
    start = rng.choice(kind.brokers, kind.subscribers, p=shares).astype(np.int32)
    if not kind.communities:
        return start
    middles = (np.arange(kind.communities) + 0.5) / kind.communities
    home = np.searchsorted(np.cumsum(shares), middles).astype(np.int32)
    return np.where(rng.random(kind.subscribers) < kind.together, home[member], start)


def _rows(kind: InstanceKind, counts: Int64s, member: Int64s, rng: np.random.Generator) -> tuple[Int64s, Int32s]:
    """Members draw mostly from their community's own BE subscriptions, which some other communities share, else from
    all."""
    groups = max(kind.communities, 1)
    width = min(_COMMUNITY * kind.each[1], kind.subscriptions) if kind.communities else 0
    overall = rng.permutation(kind.subscriptions)
    own = np.stack([rng.choice(kind.subscriptions, width, replace=False) for _ in range(groups)])
    return _draw_holdings(
        counts,
        member,
        kind.local if kind.communities else 0.0,
        _edges(width, kind.popularity),
        own.astype(np.int32),
        _edges(kind.subscriptions, kind.popularity),
        overall.astype(np.int32),
        rng,
    )


def _zipf(number: int, exponent: float) -> Floats:
    weights = np.arange(1, number + 1, dtype=np.float64) ** -exponent
    return np.asarray(weights / weights.sum())


def _edges(number: int, exponent: float) -> Floats:
    edges = np.cumsum(_zipf(number, exponent))
    edges[-1:] = 1.0  # which the sum may miss by a rounding
    return edges


@compiled
def _draw_holdings(
    counts: Int64s,
    member: Int64s,
    local: float,
    own_edges: Floats,
    own_names: Int32s,
    all_edges: Floats,
    all_names: Int32s,
    rng: np.random.Generator,
) -> tuple[Int64s, Int32s]:
    """Ascending rows of ``counts`` BE subscriptions each; what was drawn before is drawn again.

    Each is drawn from the ``own_names`` of the subscriber's group with the probability ``local``, else from
    ``all_names``; the edges are the names' cumulated probabilities.
    """
    indptr = np.zeros(len(counts) + 1, np.int64)
    idx = np.empty(counts.sum(), np.int32)
    end = 0
    for i in range(len(counts)):
        begin = end
        for _ in range(counts[i] * _ATTEMPTS):
            if end - begin == counts[i]:
                break
            if local > 0.0 and rng.random() < local:
                name = own_names[member[i], np.searchsorted(own_edges, rng.random())]
            else:
                name = all_names[np.searchsorted(all_edges, rng.random())]
            at = end
            while at > begin and idx[at - 1] > name:
                at -= 1
            if at > begin and idx[at - 1] == name:
                continue
            for later in range(end, at, -1):
                idx[later] = idx[later - 1]
            idx[at] = name
            end += 1
        indptr[i + 1] = end
    return indptr, idx[:end].copy()
