"""Plans come of the loads, can be looked at first, and are carried out only as far as they still fit."""

from __future__ import annotations

from tests.coordinator.desk import Desk, planners
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


def crowd(limits: CoordinatorLimits | None = None, **thresholds: float) -> Desk:
    """Eight subscribers with a subscription each, all of them on "a"; then "b" comes."""
    desk = Desk(limits or CoordinatorLimits(), planners(**thresholds))
    desk.hello("a")
    for n in range(8):
        desk.settle(f"p{n}", n)
    desk.hello("b")
    for broker in "ab":
        desk.say(broker, Load(0.0, 0.0, RATES))
    return desk


def finish(desk: Desk, actions: list[Action]) -> int:
    """Brokers prepare, nobody is connected, and every move is made; says how many were."""
    made = 0
    while prepares := desk.sent(actions, Prepare):
        actions = []
        for broker, prepare in prepares:
            said = desk.say(broker, Prepared(prepare.subscriber, prepare.stay))
            for source, handover in desk.sent(said, Handover):
                said += desk.say(source, Absent(handover.subscriber, handover.stay))
            actions += said
            made += 1
        actions += desk.wait(0.5)
    return made


def people(desk: Desk) -> dict[str | None, int]:
    places = desk.store.read().assignments
    brokers = [place.broker for place in places]
    return {broker: brokers.count(broker) for broker in sorted(set(brokers), key=str)}


def test_a_broker_that_joins_gets_its_share() -> None:
    desk = crowd()
    finish(desk, desk.wait(desk.limits.interval))
    assert people(desk) == {"a": 4, "b": 4}


def test_a_balanced_system_is_left_alone() -> None:
    desk = crowd()
    finish(desk, desk.wait(desk.limits.interval))
    assert desk.wait(60) == []


def test_with_balancing_off_nobody_is_moved() -> None:
    desk = crowd()
    desk.handle(Balance(0, False))
    assert desk.wait(25) == []


def test_a_broker_is_drained_though_balancing_is_off() -> None:
    desk = crowd()
    desk.handle(Balance(0, False))
    desk.handle(Drain(0, "a"))
    finish(desk, desk.wait(0.1))
    assert people(desk) == {"b": 8}


def test_a_drained_broker_stays_empty_until_it_is_released() -> None:
    desk = crowd()
    desk.handle(Drain(0, "b"))
    assert desk.wait(25) == []
    desk.handle(Drain(0, "b", on=False))
    desk.say("a", Load(0.0, 0.0))
    desk.say("b", Load(0.0, 0.0))
    finish(desk, desk.wait(desk.limits.interval))
    assert people(desk) == {"a": 4, "b": 4}


def test_a_plan_can_be_looked_at_and_nothing_moves() -> None:
    desk = crowd()
    actions = desk.handle(ShowPlan(1))
    proposal = desk.answer(actions)
    assert isinstance(proposal, Proposal)
    assert proposal.moves == 4
    assert [(line.broker, line.left, line.came) for line in proposal.brokers] == [("a", 4, 0), ("b", 0, 4)]
    assert "moves 4 of 8 subscribers" in proposal.sentences[0]
    assert desk.messages(actions) == []
    assert people(desk) == {"a": 8}


def test_a_plan_can_be_applied_though_balancing_is_off() -> None:
    desk = crowd()
    desk.handle(Balance(0, False))
    actions = desk.handle(ApplyPlan(1))
    finish(desk, actions + desk.wait(0.5))
    assert people(desk) == {"a": 4, "b": 4}


def test_plans_that_were_followed_are_counted_by_their_stage() -> None:
    desk = crowd()
    desk.handle(ShowPlan(1))
    finish(desk, desk.wait(desk.limits.interval))
    desk.handle(Drain(0, "a"))
    finish(desk, desk.wait(0.1))
    status = desk.answer(desk.handle(AskStatus(1)))
    assert isinstance(status, NetworkStatus)
    assert status.plans == {"join": 1, "drain": 1}


def test_where_there_is_nothing_to_do_the_plan_says_why() -> None:
    desk = crowd(beta=1e9, theta=1e9)
    finish(desk, desk.wait(desk.limits.interval))
    proposal = desk.answer(desk.handle(ShowPlan(1)))
    assert isinstance(proposal, Proposal)
    assert (proposal.moves, proposal.stage) == (0, "idle")
    assert proposal.reason


def test_no_more_moves_than_allowed_are_under_way() -> None:
    desk = crowd(CoordinatorLimits(in_flight=3))
    desk.handle(Drain(0, "a"))
    assert len(desk.sent(desk.wait(2.0), Prepare)) == 3
    said = desk.say("b", Prepared("p0", 2)) + desk.say("a", Absent("p0", 1))
    assert len(desk.sent(said, Prepare)) == 1


def test_no_more_moves_than_allowed_begin_in_a_second() -> None:
    desk = crowd(CoordinatorLimits(per_second=2))
    desk.handle(Drain(0, "a"))
    assert len(desk.sent(desk.wait(0.9), Prepare)) == 2
    assert len(desk.sent(desk.wait(1.0), Prepare)) == 2


def test_a_plan_whose_destination_dies_is_dropped() -> None:
    desk = crowd(CoordinatorLimits(per_second=1))
    desk.handle(Drain(0, "a"))
    desk.wait(0.5)
    desk.handle(Lost(desk.links.pop("b")))
    assert desk.sent(desk.wait(desk.limits.grace), Prepare) == []
    status = desk.answer(desk.handle(AskStatus(1)))
    assert isinstance(status, NetworkStatus)
    assert (status.waiting, status.moving) == (0, 0)


def test_steps_whose_subscribers_are_elsewhere_by_now_are_left_out() -> None:
    desk = crowd()
    decided = asked(desk).run()
    finish(desk, desk.handle(ApplyPlan(1)) + desk.wait(0.5))
    assert people(desk) == {"a": 4, "b": 4}
    assert desk.sent(desk.handle(decided) + desk.wait(0.5), Prepare) == []


def test_the_rest_of_a_plan_is_dropped_when_a_broker_is_to_drain() -> None:
    desk = crowd(CoordinatorLimits(per_second=1))
    desk.handle(ApplyPlan(1))
    step = desk.handle(Drain(0, "b"))
    assert desk.sent(step + desk.wait(20), Prepare) == []


def test_the_controller_is_asked_outside_and_sees_a_picture_of_its_own() -> None:
    desk = crowd()
    decide = asked(desk)
    rows = decide.observed.snapshot().workload.subscribers
    desk.settle("late")
    assert decide.observed.snapshot().workload.subscribers == rows == 8


def test_a_decision_that_was_overtaken_moves_nobody_against_it() -> None:
    desk = crowd()
    decided = asked(desk).run()
    desk.handle(Drain(0, "b"))
    assert desk.sent(desk.handle(decided), Prepare) == []


def test_rounds_wait_for_the_decision() -> None:
    desk = crowd()
    asked(desk)
    desk.now += desk.limits.interval
    for link in desk.links.values():
        desk.core.handle(desk.now, SignOfLife(link))
    assert not [action for action in desk.core.handle(desk.now, Tick()) if isinstance(action, Decide)]


def asked(desk: Desk) -> Decide:
    """The question of the next round, not yet answered."""
    desk.now += desk.limits.interval
    for link in desk.links.values():
        desk.core.handle(desk.now, SignOfLife(link))
    (decide,) = [action for action in desk.core.handle(desk.now, Tick()) if isinstance(action, Decide)]
    return decide


def test_nothing_is_said_before_what_was_decided_before_it_is_stored() -> None:
    desk = crowd()
    (first,) = desk.core.handle(desk.now, Balance(1, False))
    (second,) = desk.core.handle(desk.now, Balance(2, True))
    assert isinstance(first, StoreBatch)
    assert isinstance(second, StoreBatch)
    assert desk.core.handle(desk.now, Drain(3, "nowhere")) == []
    assert len(desk.core.handle(desk.now, BatchStored(first.batch))) == 1
    assert len(desk.core.handle(desk.now, BatchStored(second.batch))) == 2


def test_operators_read_names() -> None:
    desk = crowd()
    desk.handle(Drain(1, "a"))
    proposal = desk.answer(desk.handle(ShowPlan(2)))
    assert isinstance(proposal, Proposal)
    assert proposal.reason == "to be emptied: broker a"
