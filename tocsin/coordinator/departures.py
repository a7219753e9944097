"""Who leaves for good: subscribers that unregister, are removed or have not come for long, and brokers that are gone.

All of it is one batch of changes, so that after a crash somebody is either still there, or gone. Brokers are told once
it is stored; one that cannot be told, or still serves whom it should not, is told when it says ``Hello``.
"""

from __future__ import annotations

from tocsin.coordinator.parts import CoordinatorParts
from tocsin.coordinator.registry import BrokerMember
from tocsin.coordinator.store.records import DropBroker
from tocsin.errors import ConflictError, UnauthorizedError
from tocsin.model.coordination import Release


def removed_error(subscriber: str) -> UnauthorizedError:
    """What somebody who was removed is told."""
    return UnauthorizedError(f"{subscriber} was removed: whoever is to come under this name must be registered again")


def remove_subscriber(parts: CoordinatorParts, now: float, subscriber: str, registration: int = 0) -> None:
    """Removes a subscriber with all it holds, wherever it is and whatever is being done with it.

    One that is not known is removed as well, with every ``registration`` of its name up to this one.
    """
    assignment = parts.assignments.get(subscriber)
    # Written before anything is said, so that nothing is said before it is stored.
    parts.assignments.remove(subscriber, max(now + parts.limits.token_life, parts.keyring.longest), registration)
    parts.moves.abandon(assignment, removed_error(subscriber))
    parts.outbox.send(parts.registry.link(assignment.broker), Release(subscriber, assignment.stay))
    parts.presence.forget(subscriber)
    parts.repair.sure(subscriber)
    parts.workload.forget(subscriber)


def remove_broker(parts: CoordinatorParts, now: float, broker: str) -> None:
    """Removes a broker that is dead or drained, and that nobody is on; another is a ConflictError."""
    member = parts.registry.member(broker)
    if why := _why_needed(parts, member):
        raise ConflictError(f"{broker} cannot be removed: {why}")
    parts.presence.lost(now, member)
    parts.preparations.forget(broker)
    parts.plans.drop()
    parts.workload.close(broker)
    parts.registry.remove(member)
    parts.outbox.write(DropBroker(broker))


def _why_needed(parts: CoordinatorParts, member: BrokerMember) -> str:
    """Why a broker must stay, and what to do first."""
    name, people = member.name, parts.assignments.count(member.name)
    coming = parts.workload.population(name) if parts.workload.number(name) is not None else 0
    if member.dead and people:
        return f"it is dead, and its {people:,} subscribers have no other broker yet; start one that takes them"
    if not member.dead and not member.record.draining:
        return f"it is {member.state}; empty it with 'tocsin balance drain {name} --wait', or stop it"
    if people or coming:
        return f"{max(people, coming):,} subscribers are still there; wait with 'tocsin balance drain {name} --wait'"
    return ""
