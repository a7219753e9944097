"""A first assignment made of specialists: brokers are filled one after another, each with the closest group left.

For a broker, all subscribers that are left are a pool. The BE subscription that is cheapest to give up, the least own
load of holders per byte of its rate, is given up and its holders leave the pool, and so on, as when the core of a
graph is peeled out, until what remains in the pool is one broker's load. So the first brokers hold few BE
subscriptions and the last ones take what needs many. Where subscribers have much in common this is far better than
brokers that are all alike, and best responses alone do not find it.

Many brokers are filled in two or more rounds: a few groups of brokers first, then each group's brokers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.balance.compiled import compiled
from tocsin.balance.model.workload import Bools, Floats, Int32s, Int64s
from tocsin.balance.refine.state import SubscriptionRows


class Grain(NamedTuple):
    """How finely is peeled.

    Args:
        step: BE subscriptions whose cost is within this factor of the cheapest are given up together,
        fresh: as long as the pool has lost no more than this share, for then the costs have changed.
        fanout: this many groups are filled in one round.
    """

    step: float
    fresh: float
    fanout: int


FINE = Grain(1.005, 0.005, 12)
COARSE = Grain(1.5, 0.2, 4)
_CROWD = 6.0  # with so many holders of a BE subscription per broker, on average, giving one up is worth much thought


class HolderIndex(NamedTuple):
    """Who holds what, the other way round: ``idx[indptr[k]:indptr[k + 1]]`` are the holders of BE subscription k."""

    indptr: Int64s
    idx: Int32s


def is_crowded(rows: SubscriptionRows, brokers: int) -> bool:
    """Whether a BE subscription has many holders on every broker, on average."""
    return len(rows.idx) > _CROWD * len(rows.rates) * brokers


def peel_groups(rows: SubscriptionRows, members: Int64s, room: Floats) -> Int32s:
    """Groups of ``members``, one number for each: as many as there is ``room`` for, in proportion to it."""
    groups = np.zeros(len(members), np.int32)
    grain = FINE if is_crowded(rows, len(room)) else COARSE
    _divide(rows, members, np.arange(len(members)), room, 0, grain, groups)
    return groups


def _divide(
    rows: SubscriptionRows, members: Int64s, places: Int64s, room: Floats, first: int, grain: Grain, into: Int32s
) -> None:
    """Writes the groups of ``members[places]``, numbered from ``first``."""
    if len(room) == 1:
        into[places] = first
        return
    parts = np.array_split(np.arange(len(room)), min(grain.fanout, len(room)))
    shares = np.array([room[part].sum() for part in parts])
    here = members[places]
    label = peel(rows, holders_of(rows, here), here, shares, grain)
    for number, part in enumerate(parts):
        _divide(rows, members, places[label == number], room[part], first + int(part[0]), grain, into)


@compiled
def holders_of(rows: SubscriptionRows, members: Int64s) -> HolderIndex:
    """The holders of each BE subscription among ``members``, as places in ``members``."""
    indptr = np.zeros(len(rows.rates) + 1, np.int64)
    for i in members:
        for at in range(rows.indptr[i], rows.indptr[i + 1]):
            indptr[rows.idx[at] + 1] += 1
    for k in range(len(rows.rates)):
        indptr[k + 1] += indptr[k]
    idx = np.empty(indptr[-1], np.int32)
    free = indptr[:-1].copy()
    for place in range(len(members)):
        i = members[place]
        for at in range(rows.indptr[i], rows.indptr[i + 1]):
            k = rows.idx[at]
            idx[free[k]] = place
            free[k] += 1
    return HolderIndex(indptr, idx)


@compiled
def peel(rows: SubscriptionRows, holders: HolderIndex, members: Int64s, room: Floats, grain: Grain) -> Int32s:
    """One round: a group for each of ``members``, of sizes in proportion to ``room``."""
    label = np.full(len(members), -1, np.int32)
    weight = np.zeros(len(rows.rates))
    rest = 0.0
    for place in range(len(members)):
        i = members[place]
        rest += rows.own[i]
        for at in range(rows.indptr[i], rows.indptr[i + 1]):
            weight[rows.idx[at]] += rows.own[i]
    left = room.sum()
    for group in range(len(room) - 1):
        pool = label < 0
        _core(rows, holders, members, pool, weight.copy(), rest, room[group] / left, grain)
        left -= room[group]
        for place in range(len(members)):
            if pool[place]:
                i = members[place]
                label[place] = group
                rest -= rows.own[i]
                for at in range(rows.indptr[i], rows.indptr[i + 1]):
                    weight[rows.idx[at]] -= rows.own[i]
    label[label < 0] = len(room) - 1
    return label


@compiled
def _core(
    rows: SubscriptionRows,
    holders: HolderIndex,
    members: Int64s,
    pool: Bools,
    weight: Floats,
    own: float,
    share: float,
    grain: Grain,
) -> None:
    """Takes subscribers out of the pool until it makes about ``share`` of its load.

    ``weight[k]`` is the own load of the holders of k in the pool, ``own`` that of the whole pool.
    """
    live = np.flatnonzero(weight > 0.0)
    incoming = rows.rates[live].sum()
    everything, total = incoming, own
    while True:
        cheapest, live = _cheapest(rows, weight, live)
        if cheapest == np.inf:
            return
        limit = cheapest * grain.step
        stale = own * (1.0 - grain.fresh)
        for k in live:
            if weight[k] > limit * rows.rates[k] or weight[k] == 0.0:
                continue
            # Later brokers will have to fetch more than this one: about halfway, in ratio, to everything.
            later = np.sqrt(incoming * everything)
            if own - weight[k] < total * share + (later - incoming) * (1.0 - share):
                return
            gone, given_up = _evict(rows, holders, members, pool, weight, int(k))
            own -= gone
            incoming -= given_up
            if own < stale:
                break


@compiled
def _cheapest(rows: SubscriptionRows, weight: Floats, live: Int64s) -> tuple[float, Int64s]:
    """What giving up a BE subscription costs at least now, per byte of its rate, and which are still held."""
    least = np.inf
    kept = 0
    for k in live:
        if weight[k] > 0.0:
            live[kept] = k
            kept += 1
            if weight[k] < least * rows.rates[k]:
                least = weight[k] / rows.rates[k]
    return least, live[:kept]


@compiled
def _evict(
    rows: SubscriptionRows, holders: HolderIndex, members: Int64s, pool: Bools, weight: Floats, given_up: int
) -> tuple[float, float]:
    """Takes the holders of one BE subscription out of the pool. Returns their own load, and the rates of all BE
    subscriptions that nobody in the pool holds any more."""
    own, unheld = 0.0, 0.0
    for at in range(holders.indptr[given_up], holders.indptr[given_up + 1]):
        place = holders.idx[at]
        if not pool[place]:
            continue
        pool[place] = False
        i = members[place]
        own += rows.own[i]
        for held in range(rows.indptr[i], rows.indptr[i + 1]):
            k = rows.idx[held]
            weight[k] -= rows.own[i]
            if weight[k] == 0.0:
                unheld += rows.rates[k]
    return own, unheld
