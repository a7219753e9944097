"""Who logs in and subscribes when: the paper's scenario, from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tocsin.apps.emergency.interests import Interest

# Of the whole run: all log in within the first four of thirty minutes, and subscribe within the next four.
LOGINS: Final = 4 / 30
SUBSCRIPTIONS: Final = 8 / 30


@dataclass(frozen=True)
class Visit:
    """One subscriber: when it logs in, and when it subscribes to what; seconds from the beginning."""

    name: str
    login: float
    interests: Sequence[tuple[float, Interest]]


def timetable(names: Sequence[str], interests: Sequence[Interest], seconds: float, seed: int) -> list[Visit]:
    """All subscribers in the order in which they log in."""
    rng = np.random.default_rng([seed, 61])
    logins = rng.uniform(0, LOGINS * seconds, len(names))
    times = rng.uniform(LOGINS * seconds, SUBSCRIPTIONS * seconds, len(interests)).tolist()
    wanted: dict[str, list[tuple[float, Interest]]] = {name: [] for name in names}
    for at, interest in zip(times, interests, strict=True):
        wanted[interest.subscriber].append((at, interest))
    visits = [
        Visit(name, at, sorted(wanted[name], key=lambda one: one[0]))
        for name, at in zip(names, logins.tolist(), strict=True)
    ]
    return sorted(visits, key=lambda visit: visit.login)
