"""What the subscribers of a city do: when they are online, where they are then, and what they want.

Whoever follows a district (``EmergenciesAtLocation``) and comes back in another one follows that instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tocsin.apps.emergency.city import district
from tocsin.apps.emergency.interests import Interest
from tocsin.simulate.scenario import Relocations, SubscriptionChanges, Visits
from tocsin.simulate.scenarios.findings import CitySubscription
from tocsin.simulate.scenarios.tracks import STEP, CityTracks

_OF_THE_PLACE: Final = "EmergenciesAtLocation"


class Habits(NamedTuple):
    """Seconds: all come within ``arriving``; each subscribes within ``deciding`` of that; then stays online for a time
    drawn from ``online``, is away for one drawn from ``offline``, and so on. Locations are told every ``telling``."""

    arriving: float
    deciding: float
    online: tuple[float, float]
    offline: tuple[float, float]
    telling: int


class Days:
    """The tables of everybody, filled person by person. ``backends`` are all that anybody ever wanted."""

    def __init__(self, habits: Habits, tracks: CityTracks, rng: np.random.Generator) -> None:
        self._habits, self._tracks, self._rng = habits, tracks, rng
        self._numbers: dict[CitySubscription, int] = {}
        self._logins: list[tuple[Any, ...]] = []
        self._logouts: list[tuple[Any, ...]] = []
        self._subscribes: list[tuple[Any, ...]] = []
        self._unsubscribes: list[tuple[Any, ...]] = []
        self._moves: list[tuple[Any, ...]] = []
        self.first: list[tuple[float, float]] = []

    def live(self, person: int, interests: Sequence[Interest]) -> None:
        """One person's time from the first login to the end. People come in the order of their numbers."""
        visits = self._visits()
        begin = visits[0][0]
        self.first.append(self._tracks.location(person, begin))
        self._logins += [(login, person) for login, _ in visits]
        self._logouts += [(logout, person) for _, logout in visits if logout <= self._tracks.seconds]
        wanted = list(dict.fromkeys(_backend(interest, person) for interest in interests))
        times = begin + self._rng.uniform(0, self._habits.deciding, len(wanted))
        held = [backend for backend, at in zip(wanted, times.tolist(), strict=True) if self._want(at, person, backend)]
        self._follow(person, [login for login, _ in visits[1:]], held)
        self._walk(person, begin)

    @property
    def backends(self) -> list[CitySubscription]:
        """The BE subscriptions, in the order of their numbers."""
        return list(self._numbers)

    @property
    def logins(self) -> Visits:
        """Who logs in when."""
        return Visits(*_columns(self._logins, 2))

    @property
    def logouts(self) -> Visits:
        """Who logs out when."""
        return Visits(*_columns(self._logouts, 2))

    @property
    def subscribes(self) -> SubscriptionChanges:
        """Who subscribes to what, when."""
        return SubscriptionChanges(*_columns(self._subscribes, 3))

    @property
    def unsubscribes(self) -> SubscriptionChanges:
        """Who gives up what, when."""
        return SubscriptionChanges(*_columns(self._unsubscribes, 3))

    @property
    def moves(self) -> Relocations:
        """Who is where, when."""
        return Relocations(*_columns(self._moves, 4))

    def _visits(self) -> list[tuple[float, float]]:
        """Logins and logouts of one person; the last visit may go on after the end."""
        habits, draw, end = self._habits, self._rng.uniform, self._tracks.seconds
        login = draw(0, min(habits.arriving, end))
        visits = [(login, login + habits.deciding + draw(*habits.online))]
        while (login := visits[-1][1] + draw(*habits.offline)) < end:
            visits.append((login, login + draw(*habits.online)))
        return [(round(login, 3), round(logout, 3)) for login, logout in visits]

    def _want(self, at: float, person: int, backend: CitySubscription) -> bool:
        if at > self._tracks.seconds:
            return False
        number = self._numbers.setdefault(backend, len(self._numbers))
        self._subscribes.append((round(at, 3), person, number))
        return True

    def _follow(self, person: int, logins: Iterable[float], held: list[CitySubscription]) -> None:
        """At each login, the district of the location instead of the one followed for longest."""
        followed = [backend for backend in held if backend.channel == _OF_THE_PLACE]
        for login in logins:
            here = CitySubscription(_OF_THE_PLACE, location=district(*self._tracks.location(person, login)))
            if followed and here not in followed:
                self._unsubscribes.append((login, person, self._numbers[followed.pop(0)]))
                self._want(login, person, here)
                followed.append(here)

    def _walk(self, person: int, begin: float) -> None:
        """Locations after the first login, where they differ from the one told before."""
        locations = self._tracks.locations[:: self._habits.telling // STEP, person]
        changed = np.flatnonzero((np.diff(locations, axis=0) != 0).any(axis=1)) + 1
        for number in changed.tolist():
            if (at := number * self._habits.telling) > begin:
                self._moves.append((float(at), person, *locations[number].tolist()))


def _backend(interest: Interest, person: int) -> CitySubscription:
    others = {name: value for name, value in interest.params.items() if name != "user"}
    return CitySubscription(interest.channel, person=person if "user" in interest.params else None, **others)


def _columns(rows: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """Rows in the order of time, as columns."""
    return [list(column) for column in zip(*sorted(rows), strict=True)] or [[] for _ in range(width)]
