"""Plans come of the loads, can be looked at first, and are carried out only as far as they still fit."""

from __future__ import annotations

from tests.coordinator.manual import ManualCoordinator, planners
from tocsin.coordinator.actions import Action, Decide, StoreBatch
from tocsin.coordinator.answers import NetworkStatus, Proposal
from tocsin.coordinator.events import (
    ApplyPlan,
    AskStatus,
    Balance,
    BatchStored,
    Drain,
    Lost,
    ShowPlan,
    SignOfLife,
    Tick,
)
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.model.coordination import Absent, Handover, Load, Prepare, Prepared

RATES = dict.fromkeys(range(8), 100.0)


def crowd(limits: CoordinatorLimits | None = None, **thresholds: float) -> ManualCoordinator:
    """Eight subscribers with a subscription each, all of them on "a"; then "b" comes."""
    coordinator = ManualCoordinator(limits or CoordinatorLimits(), planners(**thresholds))
    coordinator.hello("a")
    for n in range(8):
        coordinator.settle(f"p{n}", n)
    coordinator.hello("b")
    for broker in "ab":
        coordinator.say(broker, Load(0.0, 0.0, RATES))
    return coordinator


def finish(coordinator: ManualCoordinator, actions: list[Action]) -> int:
    """Brokers prepare, nobody is connected, and every move is made; says how many were."""
    made = 0
    while prepares := coordinator.sent(actions, Prepare):
        actions = []
        for broker, prepare in prepares:
            said = coordinator.say(broker, Prepared(prepare.subscriber, prepare.stay))
            for source, handover in coordinator.sent(said, Handover):
                said += coordinator.say(source, Absent(handover.subscriber, handover.stay))
            actions += said
            made += 1
        actions += coordinator.wait(0.5)
    return made


def people(coordinator: ManualCoordinator) -> dict[str | None, int]:
    assignments = coordinator.store.read().assignments
    brokers = [each.broker for each in assignments]
    return {broker: brokers.count(broker) for broker in sorted(set(brokers), key=str)}


def test_a_broker_that_joins_gets_its_share() -> None:
    coordinator = crowd()
    finish(coordinator, coordinator.wait(coordinator.limits.interval))
    assert people(coordinator) == {"a": 4, "b": 4}


def test_a_balanced_system_is_left_alone() -> None:
    coordinator = crowd()
    finish(coordinator, coordinator.wait(coordinator.limits.interval))
    assert coordinator.wait(60) == []


def test_with_balancing_off_nobody_is_moved() -> None:
    coordinator = crowd()
    coordinator.handle(Balance(0, False))
    assert coordinator.wait(25) == []


def test_a_broker_is_drained_though_balancing_is_off() -> None:
    coordinator = crowd()
    coordinator.handle(Balance(0, False))
    coordinator.handle(Drain(0, "a"))
    finish(coordinator, coordinator.wait(0.1))
    assert people(coordinator) == {"b": 8}


def test_a_drained_broker_stays_empty_until_it_is_released() -> None:
    coordinator = crowd()
    coordinator.handle(Drain(0, "b"))
    assert coordinator.wait(25) == []
    coordinator.handle(Drain(0, "b", on=False))
    coordinator.say("a", Load(0.0, 0.0))
    coordinator.say("b", Load(0.0, 0.0))
    finish(coordinator, coordinator.wait(coordinator.limits.interval))
    assert people(coordinator) == {"a": 4, "b": 4}


def test_a_plan_can_be_looked_at_and_nothing_moves() -> None:
    coordinator = crowd()
    actions = coordinator.handle(ShowPlan(1))
    proposal = coordinator.answer(actions)
    assert isinstance(proposal, Proposal)
    assert proposal.moves == 4
    assert [(line.broker, line.left, line.came) for line in proposal.brokers] == [("a", 4, 0), ("b", 0, 4)]
    assert "moves 4 of 8 subscribers" in proposal.sentences[0]
    assert coordinator.messages(actions) == []
    assert people(coordinator) == {"a": 8}


def test_a_plan_can_be_applied_though_balancing_is_off() -> None:
    coordinator = crowd()
    coordinator.handle(Balance(0, False))
    actions = coordinator.handle(ApplyPlan(1))
    finish(coordinator, actions + coordinator.wait(0.5))
    assert people(coordinator) == {"a": 4, "b": 4}


def test_plans_that_were_followed_are_counted_by_their_stage() -> None:
    coordinator = crowd()
    coordinator.handle(ShowPlan(1))
    finish(coordinator, coordinator.wait(coordinator.limits.interval))
    coordinator.handle(Drain(0, "a"))
    finish(coordinator, coordinator.wait(0.1))
    status = coordinator.answer(coordinator.handle(AskStatus(1)))
    assert isinstance(status, NetworkStatus)
    assert status.plans == {"join": 1, "drain": 1}


def test_where_there_is_nothing_to_do_the_plan_says_why() -> None:
    coordinator = crowd(beta=1e9, theta=1e9)
    finish(coordinator, coordinator.wait(coordinator.limits.interval))
    proposal = coordinator.answer(coordinator.handle(ShowPlan(1)))
    assert isinstance(proposal, Proposal)
    assert (proposal.moves, proposal.stage) == (0, "idle")
    assert proposal.reason


def test_no_more_moves_than_allowed_are_under_way() -> None:
    coordinator = crowd(CoordinatorLimits(in_flight=3))
    coordinator.handle(Drain(0, "a"))
    assert len(coordinator.sent(coordinator.wait(2.0), Prepare)) == 3
    said = coordinator.say("b", Prepared("p0", 2)) + coordinator.say("a", Absent("p0", 1))
    assert len(coordinator.sent(said, Prepare)) == 1


def test_no_more_moves_than_allowed_begin_in_a_second() -> None:
    coordinator = crowd(CoordinatorLimits(per_second=2))
    coordinator.handle(Drain(0, "a"))
    assert len(coordinator.sent(coordinator.wait(0.9), Prepare)) == 2
    assert len(coordinator.sent(coordinator.wait(1.0), Prepare)) == 2


def test_a_plan_whose_destination_dies_is_dropped() -> None:
    coordinator = crowd(CoordinatorLimits(per_second=1))
    coordinator.handle(Drain(0, "a"))
    coordinator.wait(0.5)
    coordinator.handle(Lost(coordinator.links.pop("b")))
    assert coordinator.sent(coordinator.wait(coordinator.limits.grace), Prepare) == []
    status = coordinator.answer(coordinator.handle(AskStatus(1)))
    assert isinstance(status, NetworkStatus)
    assert (status.waiting, status.moving) == (0, 0)


def test_steps_whose_subscribers_are_elsewhere_by_now_are_left_out() -> None:
    coordinator = crowd()
    decided = asked(coordinator).run()
    finish(coordinator, coordinator.handle(ApplyPlan(1)) + coordinator.wait(0.5))
    assert people(coordinator) == {"a": 4, "b": 4}
    assert coordinator.sent(coordinator.handle(decided) + coordinator.wait(0.5), Prepare) == []


def test_the_rest_of_a_plan_is_dropped_when_a_broker_is_to_drain() -> None:
    coordinator = crowd(CoordinatorLimits(per_second=1))
    coordinator.handle(ApplyPlan(1))
    step = coordinator.handle(Drain(0, "b"))
    assert coordinator.sent(step + coordinator.wait(20), Prepare) == []


def test_the_controller_is_asked_outside_and_sees_a_picture_of_its_own() -> None:
    coordinator = crowd()
    decide = asked(coordinator)
    rows = decide.observed.snapshot().workload.subscribers
    coordinator.settle("late")
    assert decide.observed.snapshot().workload.subscribers == rows == 8


def test_a_decision_that_was_overtaken_moves_nobody_against_it() -> None:
    coordinator = crowd()
    decided = asked(coordinator).run()
    coordinator.handle(Drain(0, "b"))
    assert coordinator.sent(coordinator.handle(decided), Prepare) == []


def test_rounds_wait_for_the_decision() -> None:
    coordinator = crowd()
    asked(coordinator)
    coordinator.now += coordinator.limits.interval
    for link in coordinator.links.values():
        coordinator.core.handle(coordinator.now, SignOfLife(link))
    assert not [action for action in coordinator.core.handle(coordinator.now, Tick()) if isinstance(action, Decide)]


def asked(coordinator: ManualCoordinator) -> Decide:
    """The question of the next round, not yet answered."""
    coordinator.now += coordinator.limits.interval
    for link in coordinator.links.values():
        coordinator.core.handle(coordinator.now, SignOfLife(link))
    (decide,) = [action for action in coordinator.core.handle(coordinator.now, Tick()) if isinstance(action, Decide)]
    return decide


def test_nothing_is_said_before_what_was_decided_before_it_is_stored() -> None:
    coordinator = crowd()
    (first,) = coordinator.core.handle(coordinator.now, Balance(1, False))
    (second,) = coordinator.core.handle(coordinator.now, Balance(2, True))
    assert isinstance(first, StoreBatch)
    assert isinstance(second, StoreBatch)
    assert coordinator.core.handle(coordinator.now, Drain(3, "nowhere")) == []
    assert len(coordinator.core.handle(coordinator.now, BatchStored(first.batch))) == 1
    assert len(coordinator.core.handle(coordinator.now, BatchStored(second.batch))) == 2


def test_operators_read_names() -> None:
    coordinator = crowd()
    coordinator.handle(Drain(1, "a"))
    proposal = coordinator.answer(coordinator.handle(ShowPlan(2)))
    assert isinstance(proposal, Proposal)
    assert proposal.reason == "to be emptied: broker a"
