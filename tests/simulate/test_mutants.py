"""The checker checked: small faults put into the cores must be found by a few dozen schedules, or by the right one."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import Any

import pytest

from tocsin.broker import (
    accounting,
    cache,
    catchup,
    delivery,
    demand,
    detachments,
    holdings,
    migration,
    reports,
    sessions,
)
from tocsin.broker import subscriptions as broker_subscriptions
from tocsin.client.core import connector, inbox
from tocsin.client.core import subscriptions as client_subscriptions
from tocsin.coordinator import assignments, moves, outbox, placement, reconciliation, repair, workload
from tocsin.coordinator.store.records import DropAssignment, DropHeld
from tocsin.data.control import core as control
from tocsin.data.control import pending
from tocsin.data.control.events import RequestFailed
from tocsin.model.histories import Cursor, from_wire
from tocsin.model.subscriber import Cursors
from tocsin.simulate.faults.campaign import run_schedule

SEEDS = 80


def nothing(*arguments: Any, **options: Any) -> None:
    """Forgets to do it."""


def takes_anything(
    self: inbox.Inbox, connection: int, stream: inbox.NoteStream, number: int, execution: int, size: int
) -> bool:
    stream.last = max(stream.last, execution)
    return True


def flushed_at_once(self: outbox.TransactionalOutbox) -> list[Any]:
    self._stored = self._batch + 1
    return _flush(self)


def goes_on_from_where_it_was(subscription: Any, cursor: int | None) -> None:
    """Believes that everything sent has arrived."""


def says_all_is_here(self: cache.ResultCache, be: int, execution: int) -> list[tuple[int, bytes]]:
    return _after(self, be, execution) or []


def ahead_of_its_time(self: assignments.Assignments, subscriber: str, cursors: Cursors, broker: str) -> None:
    ahead = {be: from_wire(cursor, "") for be, cursor in cursors.items()}
    _advance(self, subscriber, {be: Cursor(each.execution + 2, each.incarnation) for be, each in ahead.items()}, broker)


def too_far(self: reports.Reports, stay: Any, cursors: dict[int, int]) -> None:
    for be in cursors:
        if be in stay.subscriptions:
            stay.subscriptions[be].acknowledged = stay.subscriptions[be].newest


def asks_for_nothing(self: client_subscriptions.WantedSubscriptions, subscriptions: list[Any]) -> list[Any]:
    return [action for held in subscriptions for action in self._resume(held)]


def skips_in_silence(self: catchup.Catchup, subscription: Any, last: int) -> None:
    subscription.sent = max(subscription.sent, last)


def forgets_who_was_cut_short(
    self: catchup.Catchup, subscription: Any, session: Any, execution: int, note: bytes
) -> bool:
    _hand(self, subscription, session, execution, note)
    return True


def begins_at_nothing(self: accounting.DataRate, now: float, rate: float, seconds: float) -> None:
    """Averages what this broker has had itself, from when it attached."""
    faded = self._said * exp((self._until - now) / self._span)
    self._said, self._until = faded + rate * seconds / self._span, now


def forgets_at_once(self: assignments.Assignments, subscriber: str, until: float, registration: int = 0) -> None:
    """Keeps no trace of somebody who was removed."""
    for subscription in self._held.pop(subscriber, {}):
        self._outbox.write(DropHeld(subscriber, subscription))
    assignment = self._assignments.pop(subscriber, None)
    if assignment and assignment.broker:
        self._on[assignment.broker].pop(subscriber)
    self._outbox.write(DropAssignment(subscriber))


def thinks_of_the_broker_alone(self: placement.PlacementQueue, subscriber: str) -> bool:
    return not (self._moves.get(subscriber) or self._registry.alive(self._assignments.get(subscriber).broker))


def looks_when_asked(self: control.ControlCore, turn: Any, channel: str) -> Any:
    return turn.begun or self._positions.position(channel)


def carries_out_the_last_first(self: control.ControlCore) -> None:
    self._asked.reverse()
    _begin(self)
    self._asked.reverse()


def reads_one_part_alone(self: control.ControlCore, turn: Any, request: Any, part: Any) -> Any:
    results = _answer_pull(self, turn, request, part)
    turn.over = True
    return results


def is_silent_when_refused(self: control.ControlCore, event: Any) -> list[Any]:
    return [] if isinstance(event, RequestFailed) else _handle(self, event)


def makes_it_for_nobody(self: broker_subscriptions.SubscriptionRequests, session: Any, stay: Any, *rest: Any) -> None:
    closed, session.closed = session.closed, session.closed and stay.session is None
    _attached(self, session, stay, *rest)
    session.closed = closed


def knows_no_number_of_before(self: holdings.Stay) -> set[int]:
    return set(self.subscriptions)


_attached = broker_subscriptions.SubscriptionRequests._attached
_handle, _begin, _answer_pull = control.ControlCore.handle, control.ControlCore._begin, control.ControlCore._answer_pull
_hand = catchup.Catchup._hand
_flush, _after, _advance = outbox.TransactionalOutbox.flush, cache.ResultCache.after, assignments.Assignments.advance

RARE = (90, 111, 148, 170, 176, 192, 193, 315, 360)
"""Schedules that catch what few others do."""

MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a subscriber's core takes notes twice": (inbox.Inbox, "_takes", takes_anything),
    "the coordinator speaks before it has stored": (outbox.TransactionalOutbox, "flush", flushed_at_once),
    "a broker goes on from what it sent, not from what arrived": (sessions, "_rewind", goes_on_from_where_it_was),
    "the cache says it has everything": (cache.ResultCache, "after", says_all_is_here),
    "the coordinator stores cursors that are too far": (assignments.Assignments, "advance", ahead_of_its_time),
    "a broker acknowledges what was never had": (reports.Reports, "acknowledged", too_far),
    "a subscriber's core does not ask again": (client_subscriptions.WantedSubscriptions, "welcomed", asks_for_nothing),
    "a broker waits for ever for what was lost with its link": (delivery.Delivery, "lost", nothing),
    "a broker never detaches": (detachments.Detachments, "_detach", nothing),
    "the coordinator does not remind brokers": (repair.Repair, "remind", nothing),
    "a destination is not told of a subscription made meanwhile": (moves.OngoingMoves, "changed", nothing),
    "a stay is never ended": (migration.Migration, "_end", nothing),
    "what is given up still counts": (workload.NamedWorkload, "drop", nothing),
    "whoever is on a broker that returns counts nowhere": (reconciliation, "_seat", nothing),
    "a broker meters rates by itself, from nothing on": (accounting.DataRate, "hear", begins_at_nothing),
    "whoever is away weighs as before": (workload.NamedWorkload, "suspend", nothing),
    "whoever is back weighs nothing": (workload.NamedWorkload, "resume", nothing),
    "nothing is pulled for whoever is back": (demand.Demand, "resume", nothing),
    "that somebody was removed is forgotten at once": (assignments.Assignments, "remove", forgets_at_once),
    "a destination keeps somebody who was removed": (moves.OngoingMoves, "abandon", nothing),
    "somebody who was removed is placed again": (placement.PlacementQueue, "_homeless", thinks_of_the_broker_alone),
    "those behind are never served": (catchup.Catchup, "_pull", nothing),
    "what is gone is skipped in silence": (catchup.Catchup, "_skip", skips_in_silence),
    "who could not take a note is given later ones": (catchup.Catchup, "_hand", forgets_who_was_cut_short),
    "an answer says how far a channel was when it was asked for": (control.ControlCore, "_present", looks_when_asked),
    "requests are carried out in another order": (control.ControlCore, "_begin", carries_out_the_last_first),
    "the parts of a pull are not read": (control.ControlCore, "_answer_pull", reads_one_part_alone),
    "what the storage refuses is not answered": (control.ControlCore, "handle", is_silent_when_refused),
    "what waits too long for a broker is not told": (pending.Pending, "_fold", nothing),
}

FOUND: dict[str, tuple[Any, str, Any, int]] = {
    "a late login of one's own is taken for another program's": (connector.Connector, "_excuses", nothing, 131),
    "what was asked for on a connection that is gone is made": (
        broker_subscriptions.SubscriptionRequests,
        "_attached",
        makes_it_for_nobody,
        1095,
    ),
    "what had another number and has ended comes back by what the coordinator said before": (
        holdings.Stay,
        "numbers",
        property(knows_no_number_of_before),
        1070,
    ),
}
"""Faults that were there once, each with a schedule that finds it."""


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[name])
    assert any(run_schedule(seed).wrong for seed in (*RARE, *range(SEEDS))), f"{SEEDS} schedules hold although {name}"


@pytest.mark.parametrize("name", FOUND)
def test_what_was_wrong_once_is_caught_by_its_schedule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    *fault, seed = FOUND[name]
    assert run_schedule(seed).wrong == []
    monkeypatch.setattr(*fault)
    assert run_schedule(seed).wrong, f"schedule {seed} holds although {name}: look for another that does not"
