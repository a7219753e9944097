"""Who leaves for good: subscribers that unregister, are removed or have not come for long, and brokers that are gone.

All of it is one batch of changes, so that after a crash somebody is either still there, or gone. Brokers are told once
it is stored; one that cannot be told, or still serves whom it should not, is told when it says ``Hello``.
"""

from __future__ import annotations

from tocsin.coordinator.registry import Member
from tocsin.coordinator.rooms import Rooms
from tocsin.coordinator.store.records import DropBroker
from tocsin.errors import ConflictError, UnauthorizedError
from tocsin.model.coordination import Release


def removed(subscriber: str) -> UnauthorizedError:
    """What somebody who was removed is told."""
    return UnauthorizedError(f"{subscriber} was removed: whoever is to come under this name must be registered again")


def remove_subscriber(rooms: Rooms, now: float, subscriber: str, registration: int = 0) -> None:
    """Removes a subscriber with all it holds, wherever it is and whatever is being done with it.

    One that is not known is removed as well, with every ``registration`` of its name up to this one.
    """
    place = rooms.places.get(subscriber)
    # Written before anything is said, so that nothing is said before it is stored.
    rooms.places.remove(subscriber, max(now + rooms.limits.token_life, rooms.keyring.longest), registration)
    rooms.moves.abandon(place, removed(subscriber))
    rooms.ledger.send(rooms.registry.link(place.broker), Release(subscriber, place.stay))
    rooms.attendance.forget(subscriber)
    rooms.reminders.sure(subscriber)
    rooms.loads.forget(subscriber)


def remove_broker(rooms: Rooms, now: float, broker: str) -> None:
    """Removes a broker that is dead or drained, and that nobody is on; another is a ConflictError."""
    member = rooms.registry.member(broker)
    if why := _needed(rooms, member):
        raise ConflictError(f"{broker} cannot be removed: {why}")
    rooms.attendance.lost(now, member)
    rooms.preparations.forget(broker)
    rooms.plans.drop()
    rooms.loads.close(broker)
    rooms.registry.remove(member)
    rooms.ledger.write(DropBroker(broker))


def _needed(rooms: Rooms, member: Member) -> str:
    """Why a broker must stay, and what to do first."""
    name, people = member.name, rooms.places.count(member.name)
    coming = rooms.loads.population(name) if rooms.loads.number(name) is not None else 0
    if member.dead and people:
        return f"it is dead, and its {people:,} subscribers have no other broker yet; start one that takes them"
    if not member.dead and not member.record.draining:
        return f"it is {member.state}; empty it with 'tocsin balance drain {name} --wait', or stop it"
    if people or coming:
        return f"{max(people, coming):,} subscribers are still there; wait with 'tocsin balance drain {name} --wait'"
    return ""
