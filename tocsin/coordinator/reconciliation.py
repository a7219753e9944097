"""A broker says ``Hello``: what it has is compared with what it should have."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tocsin.coordinator.parts import CoordinatorParts
from tocsin.coordinator.registry import BrokerMember
from tocsin.coordinator.store.records import Assignment
from tocsin.model.coordination import Hello, Release

MOST_FORGOTTEN: Final = 1 << 32
"""Stays of one subscriber that a coordinator can have forgotten at most."""


def reconcile(parts: CoordinatorParts, now: float, member: BrokerMember, hello: Hello) -> None:
    """Brings a broker that has come, or come back, to what is known.

    What it serves for a move is an arrival. What it has of an older stay, or of a move that was given up, it is told to
    release; what it should have and has lost, to prepare again. A stay that is newer than any known means that the
    coordinator has forgotten something, as after a backup was put in place: then the broker is right, unless the
    subscriber was removed. One that is newer by more than any backup could be old is a fault of the broker's, and is
    only to be released.
    """
    serving = {(stay.subscriber, stay.stay) for stay in hello.serving}
    prepared = {(stay.subscriber, stay.stay) for stay in hello.prepared}
    known = serving | prepared
    _believe(parts, member, sorted(serving))
    for subscriber, stay in sorted(serving):
        if parts.assignments.belongs(subscriber, stay, member.name):
            parts.moves.arrived(subscriber, stay)
    for subscriber, stay in sorted(known):
        if not parts.assignments.belongs(subscriber, stay, member.name):
            _outnumber(parts, subscriber, stay)
            parts.outbox.send(member.link, Release(subscriber, stay))
    for assignment in parts.assignments.on(member.name):
        # While it was held to be dead it took no part, and whoever was on it then counted nowhere.
        _seat(parts, assignment)
        if (assignment.subscriber, assignment.stay) not in known or parts.repair.unsure(assignment.subscriber):
            parts.repair.remind(assignment)
    parts.moves.returned(now, member.name, prepared)


def _believe(parts: CoordinatorParts, member: BrokerMember, serving: list[tuple[str, int]]) -> None:
    for subscriber, stay in serving:
        if _newer(parts, subscriber, stay) and not parts.assignments.get(subscriber).gone:
            parts.moves.cancel(subscriber, "it is elsewhere")
            known = parts.assignments.get(subscriber)
            parts.assignments.put(replace(known, broker=member.name, stay=stay, destination=None, coming=stay))
            _seat(parts, parts.assignments.get(subscriber))


def _seat(parts: CoordinatorParts, assignment: Assignment) -> None:
    held = parts.assignments.numbers_of(assignment.subscriber)
    parts.workload.seat(assignment.subscriber, assignment.destination or assignment.broker, held)


def _outnumber(parts: CoordinatorParts, subscriber: str, stay: int) -> None:
    """Never gives a number again that some broker has seen."""
    if _newer(parts, subscriber, stay):
        parts.moves.cancel(subscriber, "it must be placed anew")
        parts.assignments.put(replace(parts.assignments.get(subscriber), coming=stay))


def _newer(parts: CoordinatorParts, subscriber: str, stay: int) -> bool:
    """Whether a stay may have been given out since what is known of its subscriber; there is room for many more."""
    return 0 < stay - parts.assignments.get(subscriber).coming <= MOST_FORGOTTEN
