"""Who is on each broker, heaviest first, in an order that moves cannot upset.

A subscriber's own load is the same on every broker, so all subscribers are ranked once. A broker's members are then a
set of ranks, kept as bits in a tower: level 0 has a bit per rank, and each bit of a level above says whether a word
of 64 below has any. Coming, leaving and finding the next member cost one word per level, four for a million.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tocsin.balance.compiled import compiled
from tocsin.balance.model.workload import Bools, Int32s, Int64s

Words = npt.NDArray[np.uint64]

_ONE = np.uint64(1)
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)  # de Bruijn: each six bits in a row are different
_POSITIONS = np.zeros(64, np.int64)
for _at in range(64):
    _POSITIONS[((int(_SEQUENCE) << _at) & (2**64 - 1)) >> 58] = _at


def rank_by_load(own: Int64s) -> Int64s:
    """The subscribers by own load, heaviest first, of equals the lower number."""
    highest, number = int(own.max(initial=0)), len(own)
    if highest >= np.iinfo(np.int64).max // max(number, 1) - 1:
        return np.argsort(-own, kind="stable")
    # One number for load and place sorts several times faster than a stable sort by load.
    keys = (highest - own) * number + np.arange(number)
    keys.sort()
    return np.asarray(keys % number)


def level_starts(number: int) -> Int64s:
    """Where each level of a tower for so many ranks begins in its row of words, and after the last, where it ends."""
    starts = [0]
    words = number
    while words > 1 or len(starts) == 1:
        words = max((words + 63) // 64, 1)
        starts.append(starts[-1] + words)
    return np.array(starts, np.int64)


@compiled
def build_towers(starts: Int64s, order: Int64s, assignment: Int32s, movable: Bools, brokers: int) -> Words:
    """The tower of each broker, with those of its subscribers that may move."""
    towers = np.zeros((brokers, starts[-1]), np.uint64)
    for rank in range(len(order)):
        i = order[rank]
        if movable[i] and assignment[i] >= 0:
            come(towers[assignment[i]], starts, rank)
    return towers


@compiled
def come(tower: Words, starts: Int64s, rank: int) -> None:
    """Makes a rank a member."""
    at = rank
    for level in range(len(starts) - 1):
        word = starts[level] + (at >> 6)
        known = tower[word] != 0
        tower[word] |= _ONE << np.uint64(at & 63)
        if known:
            return
        at >>= 6


@compiled
def leave(tower: Words, starts: Int64s, rank: int) -> None:
    """Makes a member none."""
    at = rank
    for level in range(len(starts) - 1):
        word = starts[level] + (at >> 6)
        tower[word] &= ~(_ONE << np.uint64(at & 63))
        if tower[word] != 0:
            return
        at >>= 6


@compiled
def following(tower: Words, starts: Int64s, rank: int) -> int:
    """The first member at this rank or after it, or −1."""
    at, level = rank, 0
    while True:
        word = starts[level] + (at >> 6)
        if word >= starts[level + 1]:
            return -1
        rest = tower[word] >> np.uint64(at & 63)
        if rest != 0:
            break
        level += 1
        if level == len(starts) - 1:
            return -1
        at = (at >> 6) + 1
    at += lowest_bit(rest)
    while level > 0:
        level -= 1
        at = (at << 6) + lowest_bit(tower[starts[level] + at])
    return at


@compiled
def lowest_bit(word: np.uint64) -> int:
    """The position of the lowest bit that is set; some must be."""
    alone = word & (~word + _ONE)
    return int(_POSITIONS[(alone * _SEQUENCE) >> np.uint64(58)])
