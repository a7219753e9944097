"""Who comes, subscribes, unsubscribes and goes when: the paper's scenario, from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import numpy as np

from tocsin.apps.emergency.interests import Interest

# Of the whole run: all log in within the first four of thirty minutes, and subscribe within the next four.
LOGINS: Final = 4 / 30
SUBSCRIPTIONS: Final = 8 / 30
# The paper names logouts and unsubscriptions, and not how many. Here one person in four goes away once after that, for
# one to three of the thirty minutes, and one subscription in ten is given up.
AWAY: Final = 1 / 4
LEAVING: Final = (8 / 30, 26 / 30)
ABSENCE: Final = (1 / 30, 3 / 30)
GIVEN_UP: Final = 1 / 10
GIVING_UP: Final = (9 / 30, 29 / 30)


class StepKind(Enum):
    """What a person does."""

    LOGIN = auto()
    SUBSCRIBE = auto()
    UNSUBSCRIBE = auto()
    LOGOUT = auto()


@dataclass(frozen=True)
class Step:
    """What a person does ``at`` a second of the run; subscriptions are to ``interest``."""

    at: float
    kind: StepKind
    interest: Interest | None = None


def timetable(names: Sequence[str], interests: Sequence[Interest], seconds: float, seed: int) -> dict[str, list[Step]]:
    """Everybody's steps in a run of so many seconds, each person's in the order of time."""
    rng = np.random.default_rng([seed, 61])
    steps = {
        name: [Step(at, StepKind.LOGIN)]
        for name, at in zip(names, rng.uniform(0, LOGINS * seconds, len(names)).tolist(), strict=True)
    }
    times = rng.uniform(LOGINS * seconds, SUBSCRIPTIONS * seconds, len(interests)).tolist()
    for at, interest in zip(times, interests, strict=True):
        steps[interest.subscriber].append(Step(at, StepKind.SUBSCRIBE, interest))
    absences = {name: _absence(rng, seconds) for name in names if rng.random() < AWAY}
    for name, (left, back) in absences.items():
        steps[name] += [Step(left, StepKind.LOGOUT), Step(back, StepKind.LOGIN)]
    for interest in interests:
        if rng.random() < GIVEN_UP:
            at = rng.uniform(*GIVING_UP) * seconds
            left, back = absences.get(interest.subscriber, (at, at))
            # Whoever is away does it when back.
            steps[interest.subscriber].append(Step(back if left <= at < back else at, StepKind.UNSUBSCRIBE, interest))
    return {name: sorted(theirs, key=lambda step: step.at) for name, theirs in steps.items()}


def _absence(rng: np.random.Generator, seconds: float) -> tuple[float, float]:
    left = rng.uniform(*LEAVING)
    return left * seconds, (left + rng.uniform(*ABSENCE)) * seconds
