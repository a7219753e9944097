"""What subscribers and operators ask of the coordinator."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec.structs import replace

from tocsin.balance.control.observation import among
from tocsin.coordinator.actions import Reply
from tocsin.coordinator.answers import Answer, BrokerSummary, Done, Located, NetworkStatus, Registered
from tocsin.coordinator.balancing import RoundPurpose
from tocsin.coordinator.departures import remove_broker, remove_subscriber, removed_error
from tocsin.coordinator.deviation import relative_deviation
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
from tocsin.coordinator.parts import CoordinatorParts
from tocsin.coordinator.store.records import BrokerRecord, SetBalancing
from tocsin.coordinator.tokens import Claims, Role, claims
from tocsin.errors import BusyError, ConflictError, ForbiddenError, NotFoundError, TocsinError, UnavailableError

BEHIND: Final = "too much waits for the coordinator's store, which is slow or away; try again in a while"


class Requests:
    """Answers each request once: at once, or when what it asked for has come about.

    What can go wrong: a name, capacity or location that is none (:class:`InvalidError`), a token that is not valid or
    of somebody who was removed (:class:`UnauthorizedError`) or not a subscriber's (:class:`ForbiddenError`), an unknown
    broker or subscriber (:class:`NotFoundError`), a name that is taken or a broker that is needed
    (:class:`ConflictError`), no broker that takes subscribers (:class:`UnavailableError`), a store that has fallen far
    behind (:class:`BusyError`).
    """

    def __init__(self, parts: CoordinatorParts) -> None:
        self._parts = parts

    def handle(self, now: float, request: Request) -> None:
        """Acts on a request. How things stand is said even while nothing can be stored."""
        if isinstance(request, AskStatus):
            self._parts.outbox.say_now(Reply(request.handle, status(self._parts)))
            return
        if self._parts.outbox.full:
            self._parts.outbox.say_now(Reply(request.handle, BusyError(BEHIND)))
            return
        try:
            answer = self._act(now, request)
        except TocsinError as error:
            self._parts.outbox.say(Reply(request.handle, error))
            return
        if answer is not None:
            self._parts.outbox.say(Reply(request.handle, answer))

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
                self._parts.balancing = on
                self._parts.plans.drop()
                self._parts.outbox.write(SetBalancing(on))
                return Done()
            case ShowPlan(handle=handle):
                self._parts.rounds.ask(now, RoundPurpose.SHOW, handle)
                return None
            case ApplyPlan(handle=handle):
                self._parts.rounds.ask(now, RoundPurpose.APPLY, handle)
                return None
            case Drain(broker=broker, on=on):
                self._parts.registry.drain(self._parts.registry.member(broker), on)
                self._parts.plans.drop()
                self._parts.next_look = now
                return Done()

    def _register_user(self, now: float, request: RegisterUser) -> Registered:
        name, assignments = request.name, self._parts.assignments
        if request.fresh and name in assignments:
            raise ConflictError(f"there is a subscriber {name!r} already; choose another name")
        wanted = self._claims(now, name, "subscriber", request.groups)
        assignments.register(name, now)
        self._parts.presence.registered(now, name)
        mine = replace(wanted, registration=assignments.get(name).registration)
        return Registered(name, self._parts.keyring.sign(mine))

    def _register_broker(self, now: float, request: RegisterBroker) -> Registered:
        token = self._parts.keyring.sign(self._claims(now, request.name, "broker"))
        record = BrokerRecord(request.name, request.url, request.capacity, request.location)
        self._parts.workload.open(record)
        self._parts.registry.put(record, now + self._parts.limits.returning)
        return Registered(request.name, token)

    def _claims(self, now: float, name: str, role: Role, groups: tuple[str, ...] = ()) -> Claims:
        wanted = claims(name, role, now + self._parts.limits.token_life, groups)
        return replace(wanted, id=self._parts.new_token_id())

    def _remove(self, now: float, order: Removal) -> None:
        match order:
            case Unregister(token=token):
                caller = self._subscriber(now, token, "leave for good")
                # Also one that is not known, or its token would let it in afterwards.
                if not self._was_removed(caller):
                    remove_subscriber(self._parts, now, caller.name, caller.registration)
            case RemoveUser(name=name):
                if name not in self._parts.assignments:
                    raise NotFoundError(f"there is no subscriber {name!r}")
                remove_subscriber(self._parts, now, name)
            case RemoveBroker(name=name):
                remove_broker(self._parts, now, name)

    def _request(self, now: float, request: RequestBroker) -> Located | None:
        caller = self._subscriber(now, request.token, "are given a broker")
        self._admit(now, caller)
        if request.location is not None:
            self._parts.workload.locate(caller.name, request.location)
        return self._locate_now(caller.name) or self._wait_for_place(now, caller.name, request.handle)

    def _subscriber(self, now: float, token: str, what: str) -> Claims:
        caller = self._parts.verifier.verify(token, now)
        if caller.role != "subscriber":
            raise ForbiddenError(f"{caller.name} is a {caller.role}: only subscribers {what}")
        return caller

    def _admit(self, now: float, caller: Claims) -> None:
        """Knows whoever asks, unless it was removed.

        A token of a later registration than is known was signed after the backup was made that is in place: whoever is
        known by this name was removed since.
        """
        parts = self._parts
        if self._was_removed(caller):
            raise removed_error(caller.name)
        if caller.name in parts.assignments and caller.registration > parts.assignments.get(caller.name).registration:
            remove_subscriber(parts, now, caller.name)
        parts.assignments.register(caller.name, now, caller.registration)
        parts.presence.asked(now, caller.name)

    def _was_removed(self, caller: Claims) -> bool:
        known = self._parts.assignments.get(caller.name)
        return caller.registration < known.registration + bool(known.gone)

    def _locate_now(self, subscriber: str) -> Located | None:
        """Where a subscriber can log in right now, and may stay."""
        assignment, move = self._parts.assignments.get(subscriber), self._parts.moves.get(subscriber)
        if move is not None and move.phase is Phase.TELLING:
            return self._at(assignment.destination)
        if not self._parts.registry.alive(assignment.broker) or self._at_draining(assignment.broker):
            return None
        return self._at(assignment.broker)

    def _wait_for_place(self, now: float, subscriber: str, waiter: int) -> Located | None:
        """Lets a request wait until the subscriber is placed. Better a draining broker than none."""
        assignment, move = self._parts.assignments.get(subscriber), self._parts.moves.get(subscriber)
        try:
            move = move or self._parts.placement.place(now, subscriber)
        except UnavailableError:
            if self._parts.registry.alive(assignment.broker):
                return self._at(assignment.broker)
            raise
        move.waiters.append(waiter)
        return None

    def _at_draining(self, broker: str | None) -> bool:
        return broker is not None and self._parts.registry.member(broker).record.draining

    def _at(self, broker: str | None) -> Located:
        record = self._parts.registry.member(str(broker)).record
        return Located(record.name, record.url)


def status(parts: CoordinatorParts) -> NetworkStatus:
    """How things stand."""
    numbers, everywhere = parts.workload.live.brokers.tolist(), parts.workload.live.figures()
    loads = dict(zip(numbers, everywhere.loads.tolist(), strict=True))
    taking = {parts.workload.number(member.name) for member in parts.registry if member.open}
    figures = among(everywhere, np.array([number in taking for number in numbers], np.bool_))
    brokers = [
        BrokerSummary(
            member.name,
            member.record.url,
            member.state,
            parts.assignments.count(member.name),
            len(member.online),
            loads.get(parts.workload.number(member.name), 0.0),
            member.load.incoming,
            member.load.outgoing,
            member.deviation.planned,
            relative_deviation(member.load.incoming + member.load.outgoing, member.deviation.planned),
        )
        for member in parts.registry
    ]
    return NetworkStatus(
        balancing=parts.balancing,
        brokers=brokers,
        cov=figures.cov,
        mean=figures.mean,
        highest=figures.max,
        subscribers=len(parts.assignments),
        moving=len(parts.moves),
        waiting=len(parts.plans),
        homeless=len(parts.placement),
        moved=parts.moves_made,
        decision=parts.rounds.decision,
        plans=dict(parts.rounds.followed),
        problems=parts.registry.problems(),
    )
