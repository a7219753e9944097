"""Whom an edge has sent to others, and who of them did not go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from math import inf
from typing import NamedTuple

from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.replay import owner

_Times = dict[str, dict[str, float]]


class ArrivalCount(NamedTuple):
    """How many were sent to another edge in one session, and how many of them did not arrive."""

    acceptor: str
    sent: int
    missing: int


class Departures:
    """Who leaves an edge, and who was to leave it and is still there.

    Whoever was sent to another edge and is here afterwards, because it never went or came back by itself, is not sent
    there again for a while; and nowhere, once that is so of two edges. Else whoever ignores ``Move`` would be chosen
    again and again in place of those who go. If most of what one bearer had in a session did not arrive, that counts
    for all it has, whatever it calls the rest of it.
    """

    def __init__(self, limits: OverlayLimits) -> None:
        self._seconds = limits.stayed_seconds
        self._leaving: frozenset[str] = frozenset()
        self._left = -inf
        # Until when whom is not sent where: of subscribers, and of the bearers of a name.
        self._sent: _Times = {}
        self._refused: _Times = {}
        self._last: dict[str, tuple[float, ArrivalCount]] = {}

    def settle(
        self, now: float, acceptor: str, sent: Collection[str], missing: Collection[str] | None, left: float
    ) -> None:
        """These were sent to an acceptor, and leave by some time. It says who did not arrive, if it says anything."""
        self._forget(now)
        self._leaving, self._left = frozenset(sent), left
        until = left + self._seconds
        for subscriber in sent:
            self._sent.setdefault(subscriber, {})[acceptor] = until
        if missing is None:
            return
        self._last[acceptor] = until, ArrivalCount(acceptor, len(sent), len(missing))
        count, absent = Counter(map(owner, sent)), Counter(map(owner, missing))
        for bearer, stayed in absent.items():
            if 2 * stayed > count[bearer]:
                self._refused.setdefault(bearer, {})[acceptor] = until

    def brought(self, subscriber: str) -> None:
        """A session brings somebody here, so that it may be sent away as anybody else."""
        self._sent.pop(subscriber, None)

    def leaving(self, now: float) -> frozenset[str]:
        """Who is about to leave, or has left."""
        return self._leaving if now < self._left else frozenset()

    def staying(self, now: float, acceptor: str, subscribers: Iterable[str]) -> set[str]:
        """Which of these are not to be sent to an acceptor."""
        names, bearers = _refusing(self._sent, now, acceptor), _refusing(self._refused, now, acceptor)
        if not names and not bearers:
            return set()
        return {each for each in subscribers if each in names or owner(each) in bearers}

    def in_vain(self, now: float) -> list[ArrivalCount]:
        """The last sessions with others of which at least half of those who were sent did not arrive."""
        recent = (migration for until, migration in self._last.values() if until > now)
        return [each for each in recent if each.missing and 2 * each.missing >= each.sent]

    def _forget(self, now: float) -> None:
        self._sent, self._refused = _lasting(self._sent, now), _lasting(self._refused, now)
        self._last = {acceptor: each for acceptor, each in self._last.items() if each[0] > now}


def _lasting(times: _Times, now: float) -> _Times:
    lasting = {name: {at: until for at, until in each.items() if until > now} for name, each in times.items()}
    return {name: each for name, each in lasting.items() if each}


def _refusing(times: _Times, now: float, acceptor: str) -> set[str]:
    """Who has not gone to an acceptor, or to two others."""
    lasting = _lasting(times, now)
    return {name for name, each in lasting.items() if acceptor in each or len(each) > 1}
