"""What subscribers and operators ask of the coordinator."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec.structs import replace

from tocsin.balance.control.observation import among
from tocsin.coordinator.actions import Reply
from tocsin.coordinator.answers import Answer, BrokerStatus, Done, Located, Registered, Status
from tocsin.coordinator.departures import remove_broker, remove_subscriber, removed
from tocsin.coordinator.events import (
    ApplyPlan,
    AskStatus,
    Balance,
    Drain,
    Order,
    RegisterBroker,
    RegisterUser,
    Removal,
    RemoveBroker,
    RemoveUser,
    Request,
    RequestBroker,
    ShowPlan,
    Unregister,
)
from tocsin.coordinator.move import Phase
from tocsin.coordinator.rooms import Rooms
from tocsin.coordinator.rounds import Purpose
from tocsin.coordinator.store.records import Broker, SetBalancing
from tocsin.coordinator.tokens import Claims, Role, claims
from tocsin.errors import BusyError, ConflictError, ForbiddenError, NotFoundError, TocsinError, UnavailableError

BEHIND: Final = "too much waits for the coordinator's store, which is slow or away; try again in a while"


class Requests:
    """Answers each request once: at once, or when what it asked for has come about.

    What can go wrong: a name, capacity or place that is none (:class:`InvalidError`), a token that is not valid or of
    somebody who was removed (:class:`UnauthorizedError`) or not a subscriber's (:class:`ForbiddenError`), an unknown
    broker or subscriber (:class:`NotFoundError`), a name that is taken or a broker that is needed
    (:class:`ConflictError`), no broker that takes subscribers (:class:`UnavailableError`), a store that has fallen far
    behind (:class:`BusyError`).
    """

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    def handle(self, now: float, request: Request) -> None:
        """Acts on a request. How things stand is said even while nothing can be stored."""
        if isinstance(request, AskStatus):
            self._rooms.ledger.say_now(Reply(request.handle, status(self._rooms)))
            return
        if self._rooms.ledger.full:
            self._rooms.ledger.say_now(Reply(request.handle, BusyError(BEHIND)))
            return
        try:
            answer = self._act(now, request)
        except TocsinError as error:
            self._rooms.ledger.say(Reply(request.handle, error))
            return
        if answer is not None:
            self._rooms.ledger.say(Reply(request.handle, answer))

    def _act(self, now: float, order: Order) -> Answer | None:
        """The answer; None when it comes later."""
        match order:
            case RegisterUser():
                return self._register_user(now, order)
            case RegisterBroker():
                return self._register_broker(now, order)
            case RequestBroker():
                return self._request(now, order)
            case Unregister() | RemoveUser() | RemoveBroker():
                self._remove(now, order)
                return Done()
            case Balance(on=on):
                self._rooms.balancing = on
                self._rooms.plans.drop()
                self._rooms.ledger.write(SetBalancing(on))
                return Done()
            case ShowPlan(handle=handle):
                self._rooms.rounds.ask(now, Purpose.SHOW, handle)
                return None
            case ApplyPlan(handle=handle):
                self._rooms.rounds.ask(now, Purpose.APPLY, handle)
                return None
            case Drain(broker=broker, on=on):
                self._rooms.registry.drain(self._rooms.registry.member(broker), on)
                self._rooms.plans.drop()
                self._rooms.next_look = now
                return Done()

    def _register_user(self, now: float, request: RegisterUser) -> Registered:
        name, places = request.name, self._rooms.places
        if request.fresh and name in places:
            raise ConflictError(f"there is a subscriber {name!r} already; choose another name")
        wanted = self._claims(now, name, "subscriber", request.groups)
        places.register(name, now)
        self._rooms.attendance.heard(now, name)
        mine = replace(wanted, registration=places.get(name).registration)
        return Registered(name, self._rooms.keyring.sign(mine))

    def _register_broker(self, now: float, request: RegisterBroker) -> Registered:
        token = self._rooms.keyring.sign(self._claims(now, request.name, "broker"))
        record = Broker(request.name, request.url, request.capacity, request.place)
        self._rooms.loads.open(record)
        self._rooms.registry.put(record, now + self._rooms.limits.returning)
        return Registered(request.name, token)

    def _claims(self, now: float, name: str, role: Role, groups: tuple[str, ...] = ()) -> Claims:
        return claims(name, role, now + self._rooms.limits.token_life, groups)

    def _remove(self, now: float, order: Removal) -> None:
        match order:
            case Unregister(token=token):
                caller = self._subscriber(now, token, "leave for good")
                # Also one that is not known, or its token would let it in afterwards.
                if not self._was_removed(caller):
                    remove_subscriber(self._rooms, now, caller.name, caller.registration)
            case RemoveUser(name=name):
                if name not in self._rooms.places:
                    raise NotFoundError(f"there is no subscriber {name!r}")
                remove_subscriber(self._rooms, now, name)
            case RemoveBroker(name=name):
                remove_broker(self._rooms, now, name)

    def _request(self, now: float, request: RequestBroker) -> Located | None:
        caller = self._subscriber(now, request.token, "are given a broker")
        self._admit(now, caller)
        if request.place is not None:
            self._rooms.loads.locate(caller.name, request.place)
        return self._located(caller.name) or self._placed(now, caller.name, request.handle)

    def _subscriber(self, now: float, token: str, what: str) -> Claims:
        caller = self._rooms.verifier.verify(token, now)
        if caller.role != "subscriber":
            raise ForbiddenError(f"{caller.name} is a {caller.role}: only subscribers {what}")
        return caller

    def _admit(self, now: float, caller: Claims) -> None:
        """Knows whoever asks, unless it was removed.

        A token of a later registration than is known was signed after the backup was made that is in place: whoever is
        known by this name was removed since.
        """
        rooms = self._rooms
        if self._was_removed(caller):
            raise removed(caller.name)
        if caller.name in rooms.places and caller.registration > rooms.places.get(caller.name).registration:
            remove_subscriber(rooms, now, caller.name)
        rooms.places.register(caller.name, now, caller.registration)
        rooms.attendance.heard(now, caller.name)

    def _was_removed(self, caller: Claims) -> bool:
        known = self._rooms.places.get(caller.name)
        return caller.registration < known.registration + bool(known.gone)

    def _located(self, subscriber: str) -> Located | None:
        """Where a subscriber can log in right now, and may stay."""
        place, move = self._rooms.places.get(subscriber), self._rooms.moves.get(subscriber)
        if move is not None and move.phase is Phase.TELLING:
            return self._at(place.destination)
        if not self._rooms.registry.alive(place.broker) or self._at_draining(place.broker):
            return None
        return self._at(place.broker)

    def _placed(self, now: float, subscriber: str, waiter: int) -> Located | None:
        """Lets a request wait until the subscriber is placed. Better a draining broker than none."""
        place, move = self._rooms.places.get(subscriber), self._rooms.moves.get(subscriber)
        try:
            move = move or self._rooms.placing.place(now, subscriber)
        except UnavailableError:
            if self._rooms.registry.alive(place.broker):
                return self._at(place.broker)
            raise
        move.waiters.append(waiter)
        return None

    def _at_draining(self, broker: str | None) -> bool:
        return broker is not None and self._rooms.registry.member(broker).record.draining

    def _at(self, broker: str | None) -> Located:
        record = self._rooms.registry.member(str(broker)).record
        return Located(record.name, record.url)


def status(rooms: Rooms) -> Status:
    """How things stand."""
    numbers, everywhere = rooms.loads.live.brokers.tolist(), rooms.loads.live.figures()
    loads = dict(zip(numbers, everywhere.loads.tolist(), strict=True))
    taking = {rooms.loads.number(member.name) for member in rooms.registry if member.open}
    figures = among(everywhere, np.array([number in taking for number in numbers], np.bool_))
    brokers = [
        BrokerStatus(
            member.name,
            member.record.url,
            member.state,
            rooms.places.count(member.name),
            len(member.online),
            loads.get(rooms.loads.number(member.name), 0.0),
            member.load.incoming,
            member.load.outgoing,
            member.deviation.planned,
        )
        for member in rooms.registry
    ]
    return Status(
        balancing=rooms.balancing,
        brokers=brokers,
        cov=figures.cov,
        mean=figures.mean,
        highest=figures.max,
        subscribers=len(rooms.places),
        moving=len(rooms.moves),
        waiting=len(rooms.plans),
        homeless=len(rooms.placing),
        moved=rooms.moved,
        decision=rooms.rounds.decision,
        plans=dict(rooms.rounds.followed),
        problems=rooms.registry.problems(),
    )
