"""The coordinator's parts, put together from what was stored."""

from __future__ import annotations

from tocsin.balance.placement.placement import Placement
from tocsin.coordinator.attendance import Attendance
from tocsin.coordinator.detector import Detector
from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.ledger import Ledger
from tocsin.coordinator.limits import Limits
from tocsin.coordinator.loads import Loads
from tocsin.coordinator.moves import Moves
from tocsin.coordinator.places import Places
from tocsin.coordinator.placing import Placing
from tocsin.coordinator.plans import Plans
from tocsin.coordinator.preparations import Preparations
from tocsin.coordinator.registry import Registry
from tocsin.coordinator.reminders import Reminders
from tocsin.coordinator.rounds import Planners, Rounds
from tocsin.coordinator.store.records import State
from tocsin.coordinator.tokens import Verifier


class Rooms:
    """Every part by its name. ``next_look`` is when the loads are looked at again, ``moved`` counts moves made."""

    def __init__(self, state: State, now: float, placement: Placement, planners: Planners, limits: Limits) -> None:
        self.balancing, self.limits = state.balancing, limits
        self.trust(state.keyring)
        self.next_look, self.moved = now + limits.interval, 0
        self.ledger, self.loads = Ledger(limits.unstored), Loads()
        self.registry = Registry(state.brokers, now + limits.returning, self.ledger)
        self.places = Places(state, self.ledger)
        self.detector = Detector(self.registry, limits)
        self.attendance = Attendance(self.registry, self.places, self.loads, self.ledger, limits, now)
        self.preparations = Preparations(self.registry, self.places, self.ledger, limits)
        self.reminders = Reminders(self.places, self.preparations, limits)
        self.moves = Moves(
            self.registry, self.places, self.loads, self.ledger, limits, self.preparations, self.reminders
        )
        self.placing = Placing(placement, self.registry, self.places, self.loads, self.moves, limits)
        self.plans = Plans(self.registry, self.places, self.moves, limits)
        self.rounds = Rounds(planners, self.registry, self.loads, self.plans, self.ledger)
        self._furnish(now)

    def trust(self, keyring: Keyring) -> None:
        """Signs and checks tokens with this from now on."""
        self.keyring, self.verifier = keyring, Verifier(keyring.trust)

    def _furnish(self, now: float) -> None:
        for member in self.registry:
            self.loads.open(member.record)
        for place in self.places.all():
            held = [each.subscription for each in self.places.held(place.subscriber)]
            self.loads.seat(place.subscriber, place.destination or place.broker, held)
        self.moves.restore(now)
