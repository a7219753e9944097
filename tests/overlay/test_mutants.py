"""The checker checked: small faults put into the overlay's cores must be found by a few dozen schedules."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import msgspec
import pytest

from tocsin.content.filter import Filter
from tocsin.overlay import (
    alliance,
    catchup,
    departures,
    detection,
    exchange,
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
from tocsin.overlay.dialogue import Began, HeadCursor, Known
from tocsin.overlay.held import HeldSubscription
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.messages import Found, Routed, SessionAccept, SessionEnd
from tocsin.simulate.faults.campaign import run_overlay_schedule

SEEDS = 60


def nothing(*arguments: Any, **options: Any) -> None:
    """Forgets to do it."""


def takes_any_answer(self: HeldSubscription, found: Found) -> bool:
    return found.head not in self.live


def sends_whatever_comes(self: subscriptions.Subscriptions, held: Any, publication: Routed) -> bool:
    held.live.add(publication.head)
    held.incarnations.setdefault(publication.head, "")
    return bool(publication.offset > held.sent.get(publication.head, 0))


def keeps_asking(self: interests._Ask, more: list[Filter], less: list[Filter]) -> interests.Difference:
    return interests.Difference(_change(self, more, []).add, [])


def believes_it_is_stored(self: replay.ReplayLog, publisher: str) -> int:
    return self._taken.get(publisher, 0)


def marks_for_all(self: subscriptions.Subscriptions, head: str, offset: int, incarnation: str = "") -> None:
    for held in self._clients.values():
        held.incarnations.setdefault(head, "")
        held.sent[head] = held.told[head] = max(offset, held.sent.get(head, 0))


def forgets_the_gap(self: catchup.PieceFetcher, held: HeldSubscription, found: Found) -> int:
    return _begin(self, held, msgspec.structs.replace(found, oldest=1))


def replays_nothing(self: catchup.PieceFetcher, found: Found) -> None:
    _found(self, msgspec.structs.replace(found, publications=[]))


def takes_a_piece_for_all(self: catchup.PieceFetcher, held: Any, since: int, found: Found) -> None:
    _advance(self, held, since, msgspec.structs.replace(found, last=found.upto))


def takes_anything(self: subscriber.OverlaySubscriber, connection: Any, head: str, offset: int) -> bool:
    since = self.cursors.get(head, HeadCursor(0))
    self.cursors[head] = HeadCursor(max(offset, since.offset), since.incarnation)
    return True


def believes_who_begins_late(self: subscriber.OverlaySubscriber, connection: Any, began: Began) -> None:
    cursor = self.cursors.setdefault(began.head, HeadCursor(began.offset, began.incarnation))
    if cursor.incarnation == began.known != began.incarnation:
        self._begin_anew(began, cursor)
    connection.since[began.head] = HeadCursor(0, self.cursors[began.head].incarnation)


def numbers_everything_anew(self: publisher.OverlayPublisher, message: Any) -> None:
    known = isinstance(message, Known)
    _said(self, Known(message.sequence, message.incarnation) if known else message)


def begins_anew_silently(self: subscriber.OverlaySubscriber, began: Began, cursor: HeadCursor) -> None:
    self.cursors[began.head] = HeadCursor(max(0, min(cursor.offset, began.shared)), began.incarnation)


def settles_nobody(self: mediation.Mediation, session: Any) -> None:
    self._finish()


def ends_what_is_accepted_twice(self: mediation.Mediation, sender: str, message: SessionAccept) -> None:
    if not isinstance(self._session, mediation._Asking):
        self._tell(sender, SessionEnd(message.id))
    else:
        _accepted(self, sender, message)


def forgets_at_once(self: replay.ReplayLog, connected: Container[str], limits: OverlayLimits) -> list[str]:
    gone = [name for name in self._taken if name not in connected and self._taken[name] == self._stored[name]]
    for name in gone:
        self._remembered.floor = max(self._remembered.floor, self._stored[name])
        self._drop_publisher(name)
    return gone


def begins_with_one(self: replay.ReplayLog, publisher: str) -> None:
    self._remembered.floor = 0
    _admit(self, publisher)


def goes_on_in_vain(self: catchup.PieceFetcher, groups: list[Any]) -> None:
    if self._window.is_open:
        _ask_in_turn(self, groups)


def joins_for_ever(self: surroundings.Surroundings, clusters: list[str]) -> None:
    _join(self, [*self.joined, *(each for each in clusters if each not in self.joined)])


_begin, _found, _advance = catchup.PieceFetcher._begin, catchup.PieceFetcher.found, catchup.PieceFetcher._advance
_accepted = mediation.Mediation._accepted
_change = interests._Ask.change
_said = publisher.OverlayPublisher._said
_admit, _ask_in_turn = replay.ReplayLog.admit, catchup.PieceFetcher._ask_in_turn
_join = surroundings.Surroundings._join

MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "an edge does not hear that the way is interrupted": (subscriptions.Subscriptions, "interrupt", nothing),
    "an edge does not fetch when there is a way again": (subscriptions.Subscriptions, "fetch_all", nothing),
    "an edge takes the answer to an older fetch": (HeldSubscription, "awaits", takes_any_answer),
    "an edge sends before it has fetched": (subscriptions.Subscriptions, "_takes", sends_whatever_comes),
    "an edge replays nothing": (catchup.PieceFetcher, "found", replays_nothing),
    "an edge does not tell of gaps": (catchup.PieceFetcher, "_begin", forgets_the_gap),
    "an edge takes a piece for all that was missed": (catchup.PieceFetcher, "_advance", takes_a_piece_for_all),
    "an edge does not fetch the next piece": (catchup.PieceFetcher, "_go_on", nothing),
    "an edge does not hear who has read its piece": (catchup.PieceFetcher, "flushed", nothing),
    "an edge forgets who subscribes again": (subscriptions.Subscriptions, "_come_again", nothing),
    "an edge does not know that others wait for what is on its way": (
        catchup.PieceFetcher,
        "_ask_in_turn",
        goes_on_in_vain,
    ),
    "an edge believes marks of what was interrupted": (subscriptions.Subscriptions, "mark", marks_for_all),
    "an edge keeps who has gone": (subscriptions.Subscriptions, "remove", nothing),
    "a subscriber takes notes twice": (subscriber.OverlaySubscriber, "_goes_on", takes_anything),
    "a subscriber believes an edge that begins late": (
        subscriber.OverlaySubscriber,
        "_began",
        believes_who_begins_late,
    ),
    "an edge waits for ever for an answer": (mediation.Mediation, "due", nothing),
    "an edge sends away again and again who does not go": (
        departures.Departures,
        "staying",
        lambda self, now, acceptor, subscribers: set(),
    ),
    "an edge takes load whatever it has": (
        surroundings.Surroundings,
        "state",
        lambda self: detection.availability(False, self.busy, self._stabilisation.active),
    ),
    "an edge takes load before it has come to rest": (surroundings.Surroundings, "stabilise", nothing),
    "an edge gives another one too much": (exchange.Exchange, "_is_too_much", lambda self, metric, own, other: False),
    "an edge has nobody settle": (mediation.Mediation, "_settle", settles_nobody),
    "an edge hears another cluster for ever": (surroundings.Surroundings, "_join", joins_for_ever),
    "an edge ends a session that is accepted twice, and goes on with it": (
        mediation.Mediation,
        "_accepted",
        ends_what_is_accepted_twice,
    ),
    "a head ends a session that is accepted twice, and goes on with it": (
        alliance.Alliance,
        "_is_allied",
        lambda self, head, id: False,
    ),
    "a session between clusters has no end": (alliance.Alliance, "_is_over", lambda self, session, now: False),
    "a broker never asks for less": (interests._Ask, "change", keeps_asking),
    "a broker goes on to ask for what is covered": (
        interests._Ask,
        "settle",
        lambda self: interests.Difference([], []),
    ),
    "a broker forgets what a lost neighbour wanted, but not to ask for it": (interests.Interests, "close", nothing),
    "a head tells nobody of a lost neighbour": (head.Head, "_lost", lambda self, link: self._links.lost(link)),
    "a head believes an edge that speaks as a head": (head, "_may_say", lambda edge, cluster, message: True),
    "a head forgets a publisher as soon as it is gone": (replay.ReplayLog, "forget", forgets_at_once),
    "a head forgets no publisher": (head.Head, "_forget_old", nothing),
    "a head gives a publisher's numbers again": (replay.ReplayLog, "admit", begins_with_one),
    "a head says that it has what is not stored yet": (replay.ReplayLog, "stored_number", believes_it_is_stored),
    "a publisher sends nothing again": (
        publisher.OverlayPublisher,
        "_confirm",
        lambda self, sequence: self._waiting.clear(),
    ),
    "a publisher numbers anew what may be stored": (publisher.OverlayPublisher, "_said", numbers_everything_anew),
    "a head does not notice that its log is another": (replay.ReplayLog, "shared_until", lambda self, known: 2**60),
    "a head counts every cursor as lost": (replay.ReplayLog, "shared_until", lambda self, known: -1),
    "a subscriber is not told of a lost log": (subscriber.OverlaySubscriber, "_begin_anew", begins_anew_silently),
    "a broker does not say that it wants something else": (links.Links, "changed", nothing),
}

# Seeds that are tried before all others: these mistakes show in few schedules.
RARE = {
    "a subscriber believes an edge that begins late": (1, 166, 220),
    "a head believes an edge that speaks as a head": (25,),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_schedules_catch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, mutant = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, mutant)
    seeds = (*RARE.get(name, ()), *range(SEEDS))
    assert any(run_overlay_schedule(seed).wrong for seed in seeds), f"schedules hold although {name}"
