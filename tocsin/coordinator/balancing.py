"""Looking at the loads and asking the controller what to do: every few seconds, and when an operator wants to know.

The controller itself runs elsewhere (the action :class:`Decide`, the event :class:`Decided`), since a planner may take
seconds. What it decides by then is carried out only as far as it still fits.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum, auto

from tocsin.balance.control.controller import Controller, Decision
from tocsin.balance.control.observation import Observation, Standing
from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.model.explain import broker_changes, sentences
from tocsin.balance.planners.planner import Planner
from tocsin.balance.policies import planner
from tocsin.coordinator.actions import Decide, Reply
from tocsin.coordinator.answers import Proposal, ProposedChange
from tocsin.coordinator.events import Decided, Handle
from tocsin.coordinator.outbox import TransactionalOutbox
from tocsin.coordinator.plans import PendingMoves
from tocsin.coordinator.registry import BrokerRegistry
from tocsin.coordinator.workload import NamedWorkload


@dataclass(frozen=True)
class Planners:
    """What balances: a planner for migrations, one for shuffles, and when to act."""

    migration: Planner
    shuffle: Planner
    thresholds: Thresholds

    @classmethod
    def by_name(cls, migration: str, shuffle: str, thresholds: Thresholds) -> Planners:
        """Planners by their names. The paper's migrate until cov is at α, which must be that at which they begin."""
        made = planner(migration)
        if hasattr(made, "alpha"):
            made = planner(migration, alpha=thresholds.alpha)
        return cls(made, planner(shuffle), thresholds)

    def controller(self) -> Controller:
        """A controller without a past."""
        return Controller(self.migration, self.shuffle, self.thresholds)

    def resting(self) -> Controller:
        """One that only drains."""
        return Controller(self.migration, self.shuffle, replace(self.thresholds, beta=math.inf, theta=math.inf))


class RoundPurpose(Enum):
    """Why the controller was asked."""

    ROUND = auto()
    SHOW = auto()
    APPLY = auto()


@dataclass(frozen=True)
class _Question:
    purpose: RoundPurpose
    handle: Handle | None
    brokers: list[str]


class BalancingRounds:
    """Questions to the controller, and what became of them.

    An operator's plan is made without regard to what was moved lately: cool-down and settling are for the rounds. Of
    the rounds, at most one is under way.
    """

    def __init__(
        self,
        planners: Planners,
        registry: BrokerRegistry,
        workload: NamedWorkload,
        plans: PendingMoves,
        outbox: TransactionalOutbox,
    ) -> None:
        self._planners, self._registry, self._workload = planners, registry, workload
        self._plans, self._outbox = plans, outbox
        self._controller, self._resting = planners.controller(), planners.resting()
        self._asked = 0
        self._questions: dict[int, _Question] = {}
        self._settled: dict[str, None] = {}
        self.decision = "nothing was decided yet"
        self.followed: Counter[str] = Counter()

    def look(self, now: float, balancing: bool) -> None:
        """One round: asks the controller, if anything calls for a plan."""
        if any(question.purpose is RoundPurpose.ROUND for question in self._questions.values()):
            return
        self._controller.carried_out(now, self._workload.to_moves(self._settled))
        self._settled.clear()
        self._welcome(now)
        controller = self._controller if balancing else self._resting
        observed = self._observe(balancing)
        stages, self.decision = controller.due(now, observed)
        if stages:
            self._decide(now, controller, observed, RoundPurpose.ROUND, None)
        elif not balancing:
            self.decision = "brokers are drained, and plans made when asked for"

    def ask(self, now: float, purpose: RoundPurpose, handle: Handle) -> None:
        """Asks on behalf of an operator."""
        self._decide(now, self._planners.controller(), self._observe(True), purpose, handle)

    def decided(self, event: Decided) -> None:
        """The controller has answered."""
        question = self._questions.pop(event.round, None)
        if question is None:
            return
        decision = event.decision
        if question.handle is not None:
            self._outbox.say(Reply(question.handle, proposal(decision, question.brokers)))
        else:
            self.decision = f"{decision.stage}: {decision.reason}"
        if question.purpose is not RoundPurpose.SHOW and decision.moves is not None:
            self._plans.follow(self._workload.steps(decision.moves))
            self.followed[decision.stage] += 1

    def settled(self, subscriber: str) -> None:
        """A subscriber was moved; the controller leaves it where it is for a while."""
        self._settled[subscriber] = None

    def _decide(
        self, now: float, controller: Controller, observed: Observation, purpose: RoundPurpose, handle: Handle | None
    ) -> None:
        snapshot = self._workload.live.snapshot()
        brokers = [self._workload.name(number) for number in observed.brokers.tolist()]
        self._asked += 1
        self._questions[self._asked] = _Question(purpose, handle, brokers)
        self._outbox.say(Decide(self._asked, controller, now, replace(observed, snapshot=lambda: snapshot)))

    def _observe(self, balancing: bool) -> Observation:
        taking_part = [member for member in self._registry if self._workload.number(member.name) is not None]
        connected = [member for member in taking_part if member.link is not None]
        return Observation.of(
            self._workload.live,
            reported={self._number(member.name): member.reported for member in connected},
            draining=[self._number(member.name) for member in connected if member.record.draining],
            pinned=[self._number(member.name) for member in taking_part if member.link is None],
            joining=[self._number(member.name) for member in connected if member.joining and balancing],
            names={self._number(member.name): member.name for member in taking_part},
        )

    def _welcome(self, now: float) -> None:
        """Joining brokers that have their share are no longer new."""
        standing = Standing.of(now, self._observe(True), self._planners.thresholds)
        for member in self._registry:
            if member.joining and self._workload.number(member.name) in standing.open - standing.joining:
                member.joining = False

    def _number(self, broker: str) -> int:
        number = self._workload.number(broker)
        assert number is not None
        return number


def proposal(decision: Decision, brokers: list[str]) -> Proposal:
    """A decision for people, with the brokers' names in the order of the plan's rows."""
    refused = [f"{refusal.stage} by {refusal.planner}: {refusal.reason}" for refusal in decision.refused]
    if decision.plan is None:
        return Proposal(decision.stage, decision.reason, refused=refused)
    changes = [
        ProposedChange(name, change.load_before, change.load_after, change.left, change.came)
        for name, change in zip(brokers, broker_changes(decision.plan), strict=True)
    ]
    said = sentences(decision.plan)
    return Proposal(decision.stage, decision.reason, len(decision.plan.moves), said, changes, refused)
