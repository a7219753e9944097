"""A broker says ``Keep``: a subscription of one of its subscribers was made, given up, or is another than is stored."""

from __future__ import annotations

from tocsin.coordinator.actions import Send
from tocsin.coordinator.events import Link
from tocsin.coordinator.parts import CoordinatorParts
from tocsin.coordinator.registry import BrokerMember
from tocsin.coordinator.requests import BEHIND
from tocsin.model.coordination import Keep, Kept, Refused, Release
from tocsin.model.subscriber import Held, is_same


def keep(parts: CoordinatorParts, now: float, link: Link, member: BrokerMember, message: Keep) -> None:
    """Stores it and says so; during a move only once the destination knows of it, too."""
    subscriber, refer = message.subscriber, {"ref": message.ref}
    if not parts.assignments.belongs(subscriber, message.stay, member.name):
        reason = f"{subscriber} is no longer on {member.name}; it must ask again where it is now"
        parts.outbox.send(link, Refused("elsewhere", reason, refer))
        parts.outbox.send(link, Release(subscriber, message.stay))
        return
    if parts.outbox.full:
        parts.outbox.say_now(Send(link, Refused("busy", BEHIND, refer)))
        return
    if message.unasked:
        _correct(parts, message)
    else:
        _change(parts, message)
        # Whoever subscribes there has arrived, even if the broker's word of it was lost.
        parts.moves.arrived(subscriber, message.stay)
    move = parts.moves.get(subscriber)
    if move is not None:
        parts.moves.changed(now, move, link, message.ref)
    else:
        parts.outbox.send(link, Kept(message.ref))


def hold(parts: CoordinatorParts, subscriber: str, held: Held) -> None:
    """Somebody has a subscription; it is stored with what comes next."""
    if parts.assignments.hold(subscriber, held):
        parts.workload.hold(subscriber, held.subscription)


def _drop(parts: CoordinatorParts, subscriber: str, number: int) -> None:
    if parts.assignments.drop(subscriber, number):
        parts.workload.drop(subscriber, number)


def _change(parts: CoordinatorParts, message: Keep) -> None:
    """A subscriber makes a subscription or gives it up, under whatever number it is stored."""
    number = message.held.subscription
    others = (*message.was, *_namesakes(parts, message))
    for stored in (number, *others) if message.gone else others:
        _drop(parts, message.subscriber, stored)
    if not message.gone:
        hold(parts, message.subscriber, message.held)


def _correct(parts: CoordinatorParts, message: Keep) -> None:
    """What is stored is otherwise; what the subscriber has given up meanwhile stays given up."""
    name, number = message.subscriber, message.held.subscription
    meant = {*message.was} if message.gone and message.was else {number, *message.was}
    held = meant.intersection(parts.assignments.numbers_of(name))
    for other in sorted(held if message.gone else held - {number}):
        _drop(parts, name, other)
    for other in _namesakes(parts, message) if held and not message.gone else ():
        _drop(parts, name, other)
    if held and not message.gone:
        hold(parts, name, message.held)


def _namesakes(parts: CoordinatorParts, message: Keep) -> list[int]:
    """The other numbers of the same subscription: another broker may have had the one stored that it is to have."""
    stored = parts.assignments.subscriptions_of(message.subscriber)
    same = [each.subscription for each in stored if is_same(each, message.held)]
    return [number for number in same if number != message.held.subscription]
