"""The controller: which stage the loads call for, what it asks, and which plans it lets through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from tocsin.balance.control.controller import Controller, Decision
from tocsin.balance.control.observation import Observation
from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.control.triggers import Stage
from tocsin.balance.live.snapshot import WorkloadSnapshot
from tocsin.balance.live.workload import LiveWorkload
from tocsin.balance.model.plan import Moves, Plan, PlanStatus, Reason
from tocsin.balance.model.problem import Problem
from tocsin.balance.planners.conclusion import make_plan
from tocsin.balance.planners.gsh import GSH
from tocsin.balance.planners.ldm import LDM
from tocsin.balance.planners.planner import Planner
from tocsin.balance.planners.shuffle import Shuffle
from tocsin.errors import InvalidError


@dataclass
class Told:
    """A planner that proposes what the test tells it, and keeps what it was asked."""

    name: str
    brokers: Sequence[int] | None = None
    asked: list[Problem] = field(default_factory=list)

    def plan(self, problem: Problem) -> Plan:
        """Everybody to the broker that was told; None: nobody moves."""
        self.asked.append(problem)
        wanted = problem.assignment if self.brokers is None else np.array(self.brokers, np.int32)
        return make_plan(problem, self.name, PlanStatus.BALANCED, wanted, Reason.OVERLOAD)


def live_of(*populations: int, rate: int = 10) -> LiveWorkload:
    """Brokers with so many subscribers, each of whom holds a BE subscription of its own: a load of 2 × rate each."""
    live = LiveWorkload()
    for population in populations:
        broker = live.add_broker()
        for _ in range(population):
            live.subscribe(live.add_subscriber(broker), live.add_subscription(rate))
    return live


def always(live: LiveWorkload, now: float = 0.0) -> dict[int, float]:
    """Reports from all brokers, just now."""
    return dict.fromkeys(live.brokers.tolist(), now)


EAGER = Thresholds(max_over_mean=None, shuffle_gain=0)


def stage_of(live: LiveWorkload, thresholds: Thresholds = EAGER) -> Stage:
    """The first stage that a live workload's loads call for."""
    due = Controller(Told("migration"), Told("shuffle"), thresholds).due(0, Observation.of(live, always(live)))
    return due.stages[0][0] if due.stages else Stage.IDLE


class TestStages:
    def test_balanced_brokers_are_left_alone(self) -> None:
        assert stage_of(live_of(5, 5, 5)) is Stage.IDLE

    def test_above_alpha_some_migrate(self) -> None:
        assert stage_of(live_of(7, 5, 4)) is Stage.MIGRATE

    def test_above_gamma_everybody_is_shuffled(self) -> None:
        assert stage_of(live_of(9, 1, 1)) is Stage.SHUFFLE

    def test_little_load_is_not_worth_the_trouble(self) -> None:
        live = live_of(9, 1, 1, rate=3)
        assert live.figures().mean == 22.0
        assert stage_of(live, Thresholds(beta=22, theta=22)) is Stage.IDLE
        assert stage_of(live, Thresholds(beta=21, theta=22)) is Stage.MIGRATE
        assert stage_of(live, Thresholds(beta=22, theta=21)) is Stage.SHUFFLE

    def test_beta_is_bytes_per_second_also_where_load_is_utilisation(self) -> None:
        live = live_of(7, 5, 4)
        for broker in (1, 2):
            live.set_capacity(broker, 1e6)
        assert stage_of(live, Thresholds(beta=50, theta=1000)) is Stage.MIGRATE

    def test_with_many_brokers_one_may_be_far_above_while_cov_is_small(self) -> None:
        live = live_of(*[10] * 99, 20)
        assert live.figures().cov < 0.15
        assert stage_of(live) is Stage.IDLE
        assert stage_of(live, Thresholds(max_over_mean=1.5, chance=0)) is Stage.MIGRATE

    def test_what_may_be_chance_is_left_alone(self) -> None:
        few, many = live_of(11, 10, 9), live_of(1100, 1000, 900)
        by_chance = Thresholds(max_over_mean=1.02, chance=0.7)
        assert (stage_of(few, by_chance), stage_of(many, by_chance)) == (Stage.IDLE, Stage.MIGRATE)
        assert stage_of(few, Thresholds(max_over_mean=1.02, chance=0)) is Stage.MIGRATE

    def test_one_broker_has_nobody_to_share_with(self) -> None:
        assert stage_of(live_of(5)) is Stage.IDLE
        assert stage_of(LiveWorkload()) is Stage.IDLE

    def test_no_load_at_all_is_balanced(self) -> None:
        assert stage_of(live_of(9, 0, 0, rate=0), Thresholds()) is Stage.IDLE


def decide(
    live: LiveWorkload, told: Sequence[int] | None, thresholds: Thresholds = EAGER, pinned: Sequence[int] = ()
) -> Decision:
    """One decision, with planners that both propose what is told."""
    controller = Controller(Told("migration", told), Told("shuffle", told), thresholds)
    return controller.decide(0, Observation.of(live, always(live), pinned=pinned))


class TestPlans:
    def test_a_plan_that_helps_is_let_through_with_the_reason(self) -> None:
        decision = decide(live_of(4, 2), [1, 0, 0, 0, 1, 1])
        assert decision.stage is Stage.MIGRATE
        assert decision.reason == "cov is 0.333, above α = 0.15"
        assert decision.moves is not None
        assert decision.moves.subscriber.tolist() == [0]
        assert decision.refused == ()

    def test_a_shuffle_and_a_migration_never_run_together(self) -> None:
        migration, shuffle = Told("migration", [1, 0, 0, 0, 0]), Told("shuffle", [1, 1, 0, 0, 0])
        live = live_of(5, 0)
        decision = Controller(migration, shuffle, EAGER).decide(0, Observation.of(live, always(live)))
        assert decision.stage is Stage.SHUFFLE
        assert decision.plan is not None
        assert decision.plan.planner == "shuffle"
        assert migration.asked == []

    def test_a_shuffle_that_is_refused_leaves_room_for_a_migration(self) -> None:
        migration, shuffle = Told("migration", [1, 1, 0, 0, 0]), Told("shuffle", [1, 1, 1, 1, 1])
        live = live_of(5, 0)
        decision = Controller(migration, shuffle, EAGER).decide(0, Observation.of(live, always(live)))
        assert decision.stage is Stage.MIGRATE
        (refusal,) = decision.refused
        assert refusal.stage is Stage.SHUFFLE
        assert "lower the highest load only by 0.0%" in refusal.reason

    def test_nobody_is_shuffled_when_a_migration_does_nearly_as_well(self) -> None:
        migration, shuffle = Told("migration", [1, 1, 0, 0, 0]), Told("shuffle", [0, 0, 1, 1, 1])
        live = live_of(5, 0)
        thresholds = replace(EAGER, shuffle_gain=0.1)
        decision = Controller(migration, shuffle, thresholds).decide(0, Observation.of(live, always(live)))
        assert decision.stage is Stage.MIGRATE
        (refusal,) = decision.refused
        assert refusal.stage is Stage.SHUFFLE
        assert refusal.reason == (
            "it would move 3, and a migration of 2 does nearly as much: the highest load would end 0.0% lower than "
            "with that, and 10% are asked for"
        )
        assert (len(migration.asked), len(shuffle.asked)) == (1, 1)

    @pytest.mark.parametrize("migrants", [[1, 0, 0, 0, 0], None])
    def test_a_shuffle_that_gains_enough_is_preferred_to_a_migration(self, migrants: Sequence[int] | None) -> None:
        migration, shuffle = Told("migration", migrants), Told("shuffle", [0, 0, 1, 1, 1])
        live = live_of(5, 0)
        thresholds = replace(EAGER, shuffle_gain=0.1)
        decision = Controller(migration, shuffle, thresholds).decide(0, Observation.of(live, always(live)))
        assert (decision.stage, decision.refused) == (Stage.SHUFFLE, ())

    def test_without_a_migration_to_compare_with_there_is_a_shuffle(self) -> None:
        migration, shuffle = Told("migration", [1, 1, 0, 0, 0]), Told("shuffle", [0, 0, 1, 1, 1])
        live = live_of(5, 0)
        thresholds = replace(EAGER, beta=1e9, shuffle_gain=0.1)
        decision = Controller(migration, shuffle, thresholds).decide(0, Observation.of(live, always(live)))
        assert (decision.stage, migration.asked) == (Stage.SHUFFLE, [])

    def test_planners_leave_a_part_of_what_is_allowed(self) -> None:
        migration, live = Told("migration", [1, 0, 0, 0, 1, 1]), live_of(4, 2)
        for thresholds in (Thresholds(max_over_mean=1.1, chance=0, target=0.5), EAGER):
            Controller(migration, migration, thresholds).decide(0, Observation.of(live, always(live)))
        limited, free = migration.asked
        assert limited.enough == pytest.approx(1.05 * live.figures().mean)
        assert free.enough is None

    def test_a_new_broker_gets_its_share_whatever_is_enough(self) -> None:
        migration, live = Told("migration"), live_of(4, 2, 0)
        observed = Observation.of(live, always(live), joining=[2])
        Controller(migration, migration, Thresholds()).decide(0, observed)
        assert migration.asked[0].enough is None

    def test_a_plan_that_raises_the_highest_load_is_refused(self) -> None:
        decision = decide(live_of(4, 2), [1, 1, 1, 1, 1, 0])
        assert decision.plan is None
        assert decision.stage is Stage.IDLE
        assert [refusal.reason for refusal in decision.refused] == ["the highest load would rise by 25.0%"]

    def test_a_plan_that_improves_too_little_is_refused(self) -> None:
        live = live_of(40, 20)
        told = [1] + [0] * 39 + [1] * 20
        assert decide(live, told).plan is not None
        refused = decide(live, told, Thresholds(min_improvement=0.2))
        assert "20% of one of them is asked for" in refused.refused[0].reason

    def test_a_plan_that_moves_nobody_is_no_plan(self) -> None:
        decision = decide(live_of(4, 2), None)
        assert decision.plan is None
        assert decision.reason == "cov is 0.333, above α = 0.15, but no plan for it was let through"

    def test_a_budget_holds_whatever_the_planner_proposes(self) -> None:
        thresholds = Thresholds(max_moves=2)
        decision = decide(live_of(9, 1), [1, 1, 1, 1, 0, 0, 0, 0, 0, 1], thresholds)
        assert decision.plan is not None
        assert len(decision.plan.moves) == 2
        assert decision.plan.status is PlanStatus.CAPPED

    def test_moves_that_gain_too_little_are_left_out(self) -> None:
        live = live_of(9, 1)
        light = live.add_subscriber(0)
        live.subscribe(light, live.add_subscription(1))
        decision = decide(live, [1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1], Thresholds(min_gain=5))
        assert decision.moves is not None
        assert decision.moves.subscriber.tolist() == [0, 1, 2, 3]

    @pytest.mark.parametrize(
        ("told", "pinned", "says"),
        [
            ([1, 1, 0, 0, 0, 0, 1, 1], [2], ""),
            ([2, 1, 0, 0, 0, 0, 1, 1], [2], "may not receive them"),
            ([1, 1, 0, 0, 0, 0, 0, 1], [1], "away from a pinned broker"),
        ],
    )
    def test_a_planner_that_breaks_the_rules_is_refused(self, told: list[int], pinned: list[int], says: str) -> None:
        decision = decide(live_of(6, 2, 0), told, pinned=pinned)
        assert (decision.plan is None) == bool(says)
        assert all(says in refusal.reason for refusal in decision.refused)

    def test_a_planner_that_refuses_its_problem_is_heard(self) -> None:
        class Unwilling(Told):
            def plan(self, problem: Problem) -> Plan:
                raise InvalidError("not like this")

        live = live_of(4, 2)
        controller = Controller(Unwilling("unwilling"), Told("shuffle"), EAGER)
        decision = controller.decide(0, Observation.of(live, always(live)))
        assert [refusal.reason for refusal in decision.refused] == ["not like this"]

    def test_moves_are_in_the_numbers_of_the_live_workload(self) -> None:
        live = live_of(1, 8, 2)
        live.remove_subscriber(0)
        live.remove_broker(0)
        controller = Controller(LDM(), LDM(), EAGER)
        decision = controller.decide(0, Observation.of(live, always(live)))
        assert decision.moves is not None
        assert set(decision.moves.source.tolist()) == {1}
        assert set(decision.moves.destination.tolist()) == {2}
        live.apply(decision.moves)
        assert live.population.tolist() == [5, 5]


class TestReports:
    def test_a_broker_that_does_not_report_is_neither_left_nor_come_to(self) -> None:
        live = live_of(6, 2, 0)
        reported = {0: 100.0, 1: 100.0, 2: 40.0}
        planner = Told("migration", [1, 1, 0, 0, 0, 0, 1, 1])
        decision = Controller(planner, planner, EAGER).decide(100, Observation.of(live, reported))
        assert decision.plan is not None
        (problem,) = planner.asked
        assert problem.rules.pinned is not None
        assert problem.rules.pinned.tolist() == [False, False, True]

    def test_loads_that_nobody_knows_are_not_balanced(self) -> None:
        live = live_of(9, 0, 0)
        planner = Told("migration")
        decision = Controller(planner, planner, EAGER).decide(100, Observation.of(live, {1: 100.0}))
        assert decision.reason == "no recent report from brokers 0, 2; loads that nobody knows are not balanced"
        assert planner.asked == []

    def test_the_workload_is_looked_at_only_when_something_is_due(self) -> None:
        live = live_of(5, 5)
        observed = Observation(live.brokers, live.figures(), live.population, _never, always(live))
        assert Controller(LDM(), LDM(), EAGER).decide(0, observed).stage is Stage.IDLE


def _never() -> WorkloadSnapshot:
    raise AssertionError("the snapshot was taken")


class TestTime:
    def test_there_is_no_plan_within_the_cool_down(self) -> None:
        live = live_of(40, 20)
        controller = Controller(LDM(), LDM(), Thresholds(max_moves=1, cool_down=60))
        first = controller.decide(0, Observation.of(live, always(live)))
        assert first.moves is not None
        live.apply(first.moves)
        controller.carried_out(10, first.moves)
        cooling = controller.decide(69, Observation.of(live, always(live, 69)))
        assert cooling.reason == "the last plan was 59 s ago, and has 60 s to settle"
        assert controller.decide(70, Observation.of(live, always(live, 70))).plan is not None

    def test_a_plan_that_was_refused_is_not_asked_for_again_at_once(self) -> None:
        live, planner = live_of(4, 2), Told("migration")
        controller = Controller(planner, planner, EAGER)
        for now in (0, 30, 60):
            controller.decide(now, Observation.of(live, always(live, now)))
        assert len(planner.asked) == 2

    def test_a_subscriber_is_not_moved_back_within_the_window(self) -> None:
        live = live_of(4, 2)
        controller = Controller(LDM(), LDM(), Thresholds(cool_down=0, settle=300))
        first = controller.decide(0, Observation.of(live, always(live)))
        assert first.moves is not None
        live.apply(first.moves)
        controller.carried_out(0, first.moves)
        (moved,) = first.moves.subscriber.tolist()
        for other in {0, 1, 2, 3} - {moved}:
            live.remove_subscriber(other)
        live.set_rates(live.held_by(moved), 40)
        for now, back in ((10, False), (299, False), (300, True)):
            decision = controller.decide(now, Observation.of(live, always(live, now)))
            assert decision.moves is not None
            assert (moved in decision.moves.subscriber) == back

    def test_only_moves_that_were_carried_out_are_remembered(self) -> None:
        live, planner = live_of(9, 1), Told("migration", [1, 1, 1, 1, 0, 0, 0, 0, 0, 1])
        controller = Controller(planner, planner, Thresholds(cool_down=0))
        decision = controller.decide(0, Observation.of(live, always(live)))
        assert decision.moves is not None
        came = Moves(
            decision.moves.subscriber[:2],
            decision.moves.source[:2],
            decision.moves.destination[:2],
            decision.moves.reason[:2],
        )
        live.apply(came)
        controller.carried_out(1, came)
        controller.decide(2, Observation.of(live, always(live, 2)))
        fixed = planner.asked[-1].rules.fixed
        assert fixed is not None
        assert np.flatnonzero(fixed).tolist() == came.subscriber.tolist()


class TestComingAndGoing:
    def test_a_draining_broker_is_emptied_also_when_all_is_balanced(self) -> None:
        live = live_of(5, 5, 5)
        controller = Controller(LDM(), LDM(), EAGER)
        decision = controller.decide(0, Observation.of(live, always(live), draining=[2]))
        assert decision.stage is Stage.DRAIN
        assert decision.reason == "to be emptied: broker 2"
        assert decision.moves is not None
        assert set(decision.moves.source.tolist()) == {2}
        assert set(decision.moves.reason) == {Reason.DRAIN}
        live.apply(decision.moves)
        live.remove_broker(2)

    def test_what_drains_does_not_wait_for_the_cool_down(self) -> None:
        live = live_of(5, 5, 5)
        controller = Controller(LDM(), LDM(), Thresholds(max_moves=2))
        for round_ in range(3):
            decision = controller.decide(round_, Observation.of(live, always(live), draining=[2]))
            assert decision.moves is not None
            live.apply(decision.moves)
            controller.carried_out(round_, decision.moves)
        assert live.population[2] == 0
        after = controller.decide(3, Observation.of(live, always(live), draining=[2]))
        assert after.stage is Stage.IDLE

    def test_while_brokers_drain_nobody_else_moves(self) -> None:
        live = live_of(30, 2, 2)
        decision = Controller(LDM(), LDM(), EAGER).decide(0, Observation.of(live, always(live), draining=[2]))
        assert decision.moves is not None
        assert decision.moves.source.tolist() == [2, 2]

    def test_a_broker_that_drained_receives_nobody(self) -> None:
        live = live_of(9, 3, 0)
        decision = Controller(LDM(), LDM(), EAGER).decide(0, Observation.of(live, always(live), draining=[2]))
        assert decision.moves is not None
        assert set(decision.moves.destination.tolist()) == {1}

    def test_a_draining_broker_that_does_not_report_is_named(self) -> None:
        live = live_of(5, 5, 5)
        decision = Controller(LDM(), LDM(), EAGER).decide(0, Observation.of(live, {0: 0.0, 1: 0.0}, draining=[2]))
        assert decision.plan is None
        assert "no recent report from broker 2" in decision.refused[0].reason

    def test_when_nobody_is_left_to_receive_them_they_stay(self) -> None:
        live = live_of(5, 5)
        decision = Controller(LDM(), LDM(), EAGER).decide(0, Observation.of(live, always(live), draining=[0, 1]))
        assert decision.plan is None
        assert "no broker is left" in decision.refused[0].reason

    def test_a_new_broker_gets_its_share_also_when_all_is_balanced(self) -> None:
        live = live_of(*[10] * 60, 0)
        assert stage_of(live) is Stage.IDLE
        controller = Controller(LDM(alpha=0.02), LDM(), EAGER)
        decision = controller.decide(0, Observation.of(live, always(live), joining=[60]))
        assert decision.stage is Stage.JOIN
        assert decision.moves is not None
        assert set(decision.moves.destination.tolist()) == {60}
        live.apply(decision.moves)
        assert live.population[60] >= 8
        assert controller.due(1000, Observation.of(live, always(live, 1000), joining=[60])).stages == []

    def test_a_broker_is_not_asked_to_come_and_go_at_once(self) -> None:
        live = live_of(5, 5)
        with pytest.raises(InvalidError, match="broker 1 is to drain, and also pinned or joining"):
            Observation.of(live, always(live), draining=[1], joining=[1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": -0.1},
        {"beta": float("nan")},
        {"min_improvement": 0},
        {"max_over_mean": 1},
        {"target": 1.1},
        {"target": 0},
        {"chance": -1},
        {"shuffle_gain": 1.0},
        {"max_moves": 0},
        {"max_stale": 2},
        {"cool_down": -1},
    ],
)
def test_thresholds_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidError, match=next(iter(wrong))):
        Thresholds(**wrong)  # type: ignore[arg-type]


def test_the_more_make_up_a_load_the_less_is_left_to_chance() -> None:
    thresholds = Thresholds(max_over_mean=1.02, chance=0.7, target=0.5)
    assert [thresholds.limit(n) for n in (0, 1, 100, 1_000_000)] == pytest.approx([1.7, 1.7, 1.07, 1.02])
    assert thresholds.enough(100) == pytest.approx(1.035)
    assert (Thresholds.paper().limit(100), Thresholds.paper().enough(100)) == (None, None)


@pytest.mark.parametrize("shuffle", [GSH(), Shuffle()], ids=["gsh", "shuffle"])
def test_who_brings_no_load_stays_and_is_not_heaped_on_one_broker(shuffle: Planner) -> None:
    live, silent = live_of(9, 1, 1), []
    for broker in live.brokers.tolist():
        silent += [live.add_subscriber(broker) for _ in range(20)]
    for subscriber in silent:
        live.subscribe(subscriber, live.add_subscription(0))
    decision = Controller(LDM(), shuffle, EAGER).decide(0, Observation.of(live, always(live)))
    assert decision.stage is Stage.SHUFFLE
    assert decision.moves is not None
    assert not np.isin(decision.moves.subscriber, silent).any()
