"""Whatever happens, and in whatever order: in the end everybody is in one place, and nothing that was kept is lost."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.coordinator.schedule import calm, step
from tests.coordinator.world import World
from tests.examples import examples


def ended(seed: int, steps: int = 1500) -> World:
    """A world after a schedule, come to rest without broker "a"."""
    world = World(Random(seed))
    for _ in range(steps):
        step(world)
    calm(world, gone="a")
    return world


def check(world: World) -> None:
    state = world.store.read()
    stays = {(name, *stay) for name, station in world.stations.items() for stay in station.stays}
    placed = [each for each in state.assignments if each.broker is not None]
    assert stays == {(assignment.broker, assignment.subscriber, assignment.stay) for assignment in placed}, (
        "one stay each, and no other"
    )
    for assignment in placed:
        assert assignment.broker not in (None, "a"), "nobody is on a broker that is gone"
        assert assignment.destination is None, "no move goes on for ever"
        there = world.stations[assignment.broker].stays[assignment.subscriber, assignment.stay]
        known = state.held.get(assignment.subscriber, {})
        assert there.keys() == known.keys(), "the broker holds what is known"
    for (name, subscription), (ref, gone) in world.requested.items():
        if ref in world.kept:
            assert (subscription in state.held.get(name, {})) is not gone, "what was kept is there"


@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1_000_000))
def test_every_schedule_ends_well(seed: int) -> None:
    check(ended(seed))


@pytest.mark.parametrize("steps", [5, 20, 60])
def test_a_young_system_may_be_killed_too(steps: int) -> None:
    for seed in range(10):
        check(ended(seed, steps))


def test_the_same_seed_is_the_same_schedule() -> None:
    one, other = ended(11).store.read(), ended(11).store.read()
    assert (one.assignments, one.held) == (other.assignments, other.held)


@pytest.mark.slow
def test_schedules_do_what_they_are_for() -> None:
    """They move people and keep subscriptions, so that the checks above mean something."""
    said = sum((ended(seed).said for seed in range(20)), Counter[str]())
    assert min(said[kind] for kind in ("Prepare", "Handover", "Release", "Kept", "Refused")) > 5
