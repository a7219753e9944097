"""The coordinator's parts, put together from what was stored."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.balance.placement.placement import Placement
from tocsin.coordinator.assignments import Assignments
from tocsin.coordinator.balancing import BalancingRounds, Planners
from tocsin.coordinator.detector import Detector
from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.moves import OngoingMoves
from tocsin.coordinator.outbox import TransactionalOutbox
from tocsin.coordinator.placement import PlacementQueue
from tocsin.coordinator.plans import PendingMoves
from tocsin.coordinator.preparations import Preparations
from tocsin.coordinator.presence import PresenceTracker
from tocsin.coordinator.registry import BrokerRegistry
from tocsin.coordinator.repair import Repair
from tocsin.coordinator.store.records import StoredState
from tocsin.coordinator.tokens import Verifier
from tocsin.coordinator.workload import NamedWorkload


class CoordinatorParts:
    """Every part by its name. ``next_look`` is when the loads are looked at again, ``moves_made`` how many."""

    def __init__(
        self,
        state: StoredState,
        now: float,
        placement: Placement,
        planners: Planners,
        limits: CoordinatorLimits,
        new_token_id: Callable[[], str],
    ) -> None:
        self.balancing, self.limits, self.new_token_id = state.balancing, limits, new_token_id
        self.trust(state.keyring)
        self.next_look, self.moves_made = now + limits.interval, 0
        self.outbox, self.workload = TransactionalOutbox(limits.unstored), NamedWorkload()
        self.registry = BrokerRegistry(state.brokers, now + limits.returning, self.outbox)
        self.assignments = Assignments(state, self.outbox)
        self.detector = Detector(self.registry, limits)
        self.presence = PresenceTracker(self.registry, self.assignments, self.workload, self.outbox, limits, now)
        self.preparations = Preparations(self.registry, self.assignments, self.outbox, limits)
        self.repair = Repair(self.assignments, self.preparations, limits)
        self.moves = OngoingMoves(
            self.registry, self.assignments, self.workload, self.outbox, limits, self.preparations, self.repair
        )
        self.placement = PlacementQueue(placement, self.registry, self.assignments, self.workload, self.moves, limits)
        self.plans = PendingMoves(self.registry, self.assignments, self.moves, limits)
        self.rounds = BalancingRounds(planners, self.registry, self.workload, self.plans, self.outbox)
        self._fill_workload(now)

    def trust(self, keyring: Keyring) -> None:
        """Signs and checks tokens with this from now on."""
        self.keyring, self.verifier = keyring, Verifier(keyring.trust)

    def _fill_workload(self, now: float) -> None:
        for member in self.registry:
            self.workload.open(member.record)
        for assignment in self.assignments.all():
            held = self.assignments.numbers_of(assignment.subscriber)
            self.workload.seat(assignment.subscriber, assignment.destination or assignment.broker, held)
        self.moves.restore(now)
