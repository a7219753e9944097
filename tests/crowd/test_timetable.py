"""Who comes and goes when."""

from __future__ import annotations

import pytest

from tocsin.apps.emergency import World
from tocsin.crowd.timetable import ABSENCE, Step, StepKind, timetable

SECONDS = 1800


@pytest.fixture(scope="module")
def world() -> World:
    return World(1, people=200)


@pytest.fixture(scope="module")
def steps(world: World) -> dict[str, list[Step]]:
    return timetable(world.subscribers, world.interests(), SECONDS, seed=1)


def of(steps: dict[str, list[Step]], kind: StepKind) -> list[Step]:
    return [step for theirs in steps.values() for step in theirs if step.kind is kind]


def test_all_log_in_within_four_minutes_and_subscribe_within_the_next_four(
    world: World, steps: dict[str, list[Step]]
) -> None:
    assert list(steps) == world.subscribers
    assert all(theirs[0].kind is StepKind.LOGIN and theirs[0].at <= 240 for theirs in steps.values())
    times = [step.at for step in of(steps, StepKind.SUBSCRIBE)]
    assert len(times) == len(world.interests())
    assert 240 <= min(times) <= max(times) <= 480


def test_some_log_out_for_a_while_and_come_back_before_the_end(steps: dict[str, list[Step]]) -> None:
    gone = [theirs for theirs in steps.values() if any(step.kind is StepKind.LOGOUT for step in theirs)]
    assert len(gone) == pytest.approx(len(steps) / 4, rel=0.3)
    for theirs in gone:
        (left,) = (step.at for step in theirs if step.kind is StepKind.LOGOUT)
        _, back = (step.at for step in theirs if step.kind is StepKind.LOGIN)
        assert 480 <= left < back <= SECONDS
        assert ABSENCE[0] * SECONDS <= back - left <= ABSENCE[1] * SECONDS + 1e-6


def test_some_subscriptions_are_given_up_each_once_after_it_was_made_by_people_who_are_there(
    steps: dict[str, list[Step]],
) -> None:
    given_up = of(steps, StepKind.UNSUBSCRIBE)
    assert len(given_up) == pytest.approx(len(of(steps, StepKind.SUBSCRIBE)) / 10, rel=0.3)
    assert all(540 <= step.at <= SECONDS for step in given_up)
    for theirs in steps.values():
        there, held = False, []
        for step in theirs:
            match step.kind:
                case StepKind.LOGIN | StepKind.LOGOUT:
                    there = step.kind is StepKind.LOGIN
                case StepKind.SUBSCRIBE:
                    held.append(step.interest)
                case StepKind.UNSUBSCRIBE:
                    assert there
                    held.remove(step.interest)


def test_the_same_seed_is_the_same_timetable(world: World, steps: dict[str, list[Step]]) -> None:
    assert timetable(world.subscribers, world.interests(), SECONDS, seed=1) == steps
    assert timetable(world.subscribers, world.interests(), SECONDS, seed=2) != steps
