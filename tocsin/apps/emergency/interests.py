"""What the subscribers subscribe to.

As in the paper's experiment, everyone takes one to five channels with one to three subscriptions each. What people want
is much the same: a few channels, types and districts have most of the subscriptions, so that some 400 people's 2,200
frontend subscriptions come to about 610 different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin.apps.emergency.chance import Purpose, generator

CHANNELS_EACH = 5
SUBSCRIPTIONS_EACH = 3

# How much each channel is wanted. The paper gives the totals only: these weights and the skews below are chosen to
# meet them. Nobody shares a subscription near a user, being another user, so those channels have to be wanted less.
CHANNELS: dict[str, tuple[float, tuple[str, ...]]] = {
    "EmergenciesOfType": (1.0, ("event",)),
    "EmergenciesAtLocation": (1.0, ("location",)),
    "EmergenciesNearMe": (0.07, ("event", "user")),
    "EmergenciesOfTypeNearMe": (0.07, ("event", "user", "radius")),
    "EmergenciesOfTypeAtLocation": (1.0, ("event", "location")),
    "EmergenciesOfTypeWithShelterNearMe": (0.07, ("event", "user")),
    "EmergenciesOfTypeAtLocationWithShelter": (1.0, ("event", "location")),
}
RADII = (250.0, 500.0, 1000.0)

# The n-th most popular type, or district, has a share in proportion to n to the power of minus this.
TYPE_SKEW = 0.9
DISTRICT_SKEW = 1.35


@dataclass(frozen=True)
class Interest:
    """A subscription that a subscriber makes."""

    subscriber: str
    channel: str
    params: dict[str, Any]


def interests(subscribers: Sequence[str], types: Sequence[str], districts: Sequence[str], seed: int) -> list[Interest]:
    """The interests of all subscribers; ``types`` and ``districts`` in the order of their popularity."""
    return [
        interest
        for number, subscriber in enumerate(subscribers)
        for interest in _Person(subscriber, types, districts, generator(seed, Purpose.INTERESTS, number)).interests()
    ]


class _Person:
    """One subscriber making up their mind."""

    def __init__(self, name: str, types: Sequence[str], districts: Sequence[str], rng: np.random.Generator) -> None:
        self._name, self._types, self._districts, self._rng = name, types, districts, rng

    def interests(self) -> list[Interest]:
        """What they want, each subscription once even where they thought of it twice."""
        wanted = []
        for channel in self._channels():
            _, parameters = CHANNELS[channel]
            for _ in range(self._rng.integers(1, SUBSCRIPTIONS_EACH + 1)):
                interest = Interest(self._name, channel, {name: self._value(name) for name in parameters})
                if interest not in wanted:
                    wanted.append(interest)
        return wanted

    def _channels(self) -> list[str]:
        weights = np.array([weight for weight, _ in CHANNELS.values()])
        count = self._rng.integers(1, CHANNELS_EACH + 1)
        chosen = self._rng.choice(len(CHANNELS), size=count, replace=False, p=weights / weights.sum())
        return [list(CHANNELS)[i] for i in chosen]

    def _value(self, parameter: str) -> Any:
        match parameter:
            case "event":
                return self._popular(self._types, TYPE_SKEW)
            case "location":
                return self._popular(self._districts, DISTRICT_SKEW)
            case "radius":
                return float(self._rng.choice(RADII))
            case _:
                return self._name

    def _popular(self, choices: Sequence[str], skew: float) -> str:
        """One of ``choices``, the earlier ones more often (Zipf's law)."""
        shares = np.arange(1, len(choices) + 1) ** -skew
        return choices[int(self._rng.choice(len(choices), p=shares / shares.sum()))]
