"""A broker says ``Hello``: what it has is compared with what it should have."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tocsin.coordinator.registry import Member
from tocsin.coordinator.rooms import Rooms
from tocsin.coordinator.store.records import Place
from tocsin.model.coordination import Hello, Release

MOST_FORGOTTEN: Final = 1 << 32
"""Stays of one subscriber that a coordinator can have forgotten at most."""


def reconcile(rooms: Rooms, now: float, member: Member, hello: Hello) -> None:
    """Brings a broker that has come, or come back, to what is known.

    What it serves for a move is an arrival. What it has of an older stay, or of a move that was given up, it is told to
    release; what it should have and has lost, to prepare again. A stay that is newer than any known means that the
    coordinator has forgotten something, as after a backup was put in place: then the broker is right, unless the
    subscriber was removed. One that is newer
    by more than any backup could be old is a fault of the broker's, and is only to be released.
    """
    serving = {(stay.subscriber, stay.stay) for stay in hello.serving}
    prepared = {(stay.subscriber, stay.stay) for stay in hello.prepared}
    known = serving | prepared
    _believe(rooms, member, sorted(serving))
    for subscriber, stay in sorted(serving):
        if rooms.places.belongs(subscriber, stay, member.name):
            rooms.moves.arrived(subscriber, stay)
    for subscriber, stay in sorted(known):
        if not rooms.places.belongs(subscriber, stay, member.name):
            _outnumber(rooms, subscriber, stay)
            rooms.ledger.send(member.link, Release(subscriber, stay))
    for place in rooms.places.on(member.name):
        # While it was held to be dead it took no part, and whoever was on it then counted nowhere.
        _seat(rooms, place)
        if (place.subscriber, place.stay) not in known or rooms.reminders.unsure(place.subscriber):
            rooms.reminders.remind(place)
    rooms.moves.returned(now, member.name, prepared)


def _believe(rooms: Rooms, member: Member, serving: list[tuple[str, int]]) -> None:
    for subscriber, stay in serving:
        if _newer(rooms, subscriber, stay) and not rooms.places.get(subscriber).gone:
            rooms.moves.cancel(subscriber, "it is elsewhere")
            known = rooms.places.get(subscriber)
            rooms.places.put(replace(known, broker=member.name, stay=stay, destination=None, coming=stay))
            _seat(rooms, rooms.places.get(subscriber))


def _seat(rooms: Rooms, place: Place) -> None:
    held = [each.subscription for each in rooms.places.held(place.subscriber)]
    rooms.loads.seat(place.subscriber, place.destination or place.broker, held)


def _outnumber(rooms: Rooms, subscriber: str, stay: int) -> None:
    """Never gives a number again that some broker has seen."""
    if _newer(rooms, subscriber, stay):
        rooms.moves.cancel(subscriber, "it must be placed anew")
        rooms.places.put(replace(rooms.places.get(subscriber), coming=stay))


def _newer(rooms: Rooms, subscriber: str, stay: int) -> bool:
    """Whether a stay may have been given out since what is known of its subscriber; there is room for many more."""
    return 0 < stay - rooms.places.get(subscriber).coming <= MOST_FORGOTTEN
