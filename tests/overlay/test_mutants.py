"""The checker checked: small faults put into the overlay's cores must be found by a few dozen schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tocsin.overlay import (
    alliance,
    head,
    interests,
    links,
    mediation,
    publisher,
    replay,
    subscriber,
    subscriptions,
    surroundings,
)
from tocsin.overlay.messages import Found, Routed
from tocsin.simulate.faults.campaign import run_overlay_schedule

SEEDS = 60


def nothing(*arguments: Any, **options: Any) -> None:
    """Forgets to do it."""


def takes_any_answer(self: subscriptions.Subscriptions, found: Found) -> None:
    for held in self._sessions.values():
        if found.head not in held.live:
            self._catch_up(held, found)


def sends_whatever_comes(self: subscriptions.Subscriptions, held: Any, publication: Routed) -> bool:
    held.live.add(publication.head)
    return bool(publication.offset > held.sent.get(publication.head, 0))


def keeps_asking(self: interests._Ask) -> interests.Difference:
    before = dict(self.asked)
    self.asked.update(dict.fromkeys(self._order.covering_set()))
    return interests.Difference([each for each in self.asked if each not in before], [])


def believes_it_is_stored(self: replay.ReplayLog, publisher: str) -> int:
    return self._taken.get(publisher, 0)


def marks_for_all(self: subscriptions.Subscriptions, head: str, offset: int) -> None:
    for held in self._sessions.values():
        held.sent[head] = held.told[head] = max(offset, held.sent.get(head, 0))


def forgets_the_gap(self: subscriptions.Subscriptions, held: Any, since: int, found: Found) -> None:
    _replay(self, held, max(since, found.oldest - 1), found)


def takes_anything(self: subscriber.Subscriber, connection: Any, head: str, offset: int) -> bool:
    self.cursors[head] = max(offset, self.cursors.get(head, 0))
    return True


def believes_who_begins_late(self: subscriber.Subscriber, connection: Any, head: str, offset: int) -> None:
    self.cursors.setdefault(head, offset)
    connection.since[head] = 0


def settles_nobody(self: mediation.Mediation, session: Any) -> None:
    self._finish()


def joins_for_ever(self: surroundings.Surroundings, clusters: list[str]) -> None:
    _join(self, [*self.joined, *(each for each in clusters if each not in self.joined)])


_replay = subscriptions.Subscriptions._replay
_join = surroundings.Surroundings._join

MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "an edge does not hear that the way is interrupted": (subscriptions.Subscriptions, "interrupt", nothing),
    "an edge does not fetch when there is a way again": (subscriptions.Subscriptions, "fetch_all", nothing),
    "an edge takes the answer to an older fetch": (subscriptions.Subscriptions, "found", takes_any_answer),
    "an edge sends before it has fetched": (subscriptions.Subscriptions, "_takes", sends_whatever_comes),
    "an edge replays nothing": (subscriptions.Subscriptions, "_replay", nothing),
    "an edge does not tell of gaps": (subscriptions.Subscriptions, "_replay", forgets_the_gap),
    "an edge believes marks of what was interrupted": (subscriptions.Subscriptions, "mark", marks_for_all),
    "an edge keeps who has gone": (subscriptions.Subscriptions, "remove", nothing),
    "a subscriber takes notes twice": (subscriber.Subscriber, "_goes_on", takes_anything),
    "a subscriber believes an edge that begins late": (subscriber.Subscriber, "_began", believes_who_begins_late),
    "an edge waits for ever for an answer": (mediation.Mediation, "due", nothing),
    "an edge has nobody settle": (mediation.Mediation, "_settle", settles_nobody),
    "an edge hears another cluster for ever": (surroundings.Surroundings, "_join", joins_for_ever),
    "a session between clusters has no end": (alliance.Alliance, "_is_over", lambda self, session, now: False),
    "a broker never asks for less": (interests._Ask, "settle", keeps_asking),
    "a broker forgets what a lost neighbour wanted, but not to ask for it": (interests.Interests, "close", nothing),
    "a head tells nobody of a lost neighbour": (head.Head, "_lost", lambda self, link: self._links.lost(link)),
    "a head says that it has what is not stored yet": (replay.ReplayLog, "sequence", believes_it_is_stored),
    "a publisher sends nothing again": (publisher.Publisher, "_confirm", lambda self, sequence: self._waiting.clear()),
    "a broker does not say that it wants something else": (links.Links, "changed", nothing),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_schedules_catch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, mutant = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, mutant)
    assert any(run_overlay_schedule(seed).wrong for seed in range(SEEDS)), f"{SEEDS} schedules hold although {name}"
