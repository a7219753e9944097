"""Schedules: what happens in the world, drawn at random, and how it comes to rest."""

from __future__ import annotations

from collections.abc import Callable

from tests.coordinator.world import World
from tocsin.coordinator.events import ApplyPlan, Balance, Drain


def operate(world: World) -> None:
    """An operator does something."""
    if world.random.random() < 0.5:
        world.tell(ApplyPlan(0))
    else:
        world.tell(Drain(0, world.random.choice("abc"), world.random.random() < 0.5))


def step(world: World) -> None:
    """Something happens."""
    station = world.random.choice(list(world.stations.values()))
    person = world.random.choice(list(world.people.values()))
    happenings: list[tuple[int, Callable[[], None]]] = [
        (60, lambda: world.hear(station)),
        (60, lambda: world.act(station, willing=world.random.random() < 0.9)),
        (40, world.commit),
        (20, lambda: world.connect(station)),
        (10, lambda: world.ask(person)),
        (8, lambda: world.follow(person)),
        (8, lambda: world.request(person)),
        (6, lambda: world.acknowledge(person)),
        (6, lambda: world.pass_time(world.random.random() * 1.5)),
        (6, world.decide),
        (3, lambda: world.leave(person)),
        (2, lambda: world.lose(station)),
        (1, lambda: world.crash(station)),
        (1, world.restart),
        (2, lambda: operate(world)),
    ]
    weights = [weight for weight, _ in happenings]
    world.random.choices([happening for _, happening in happenings], weights)[0]()


def calm(world: World, gone: str) -> None:
    """Nothing bad happens any more: one broker is gone for good, the others connect, and all goes its way.

    No new moves are planned either: they would never end for those who do not follow.
    """
    world.crash(world.stations[gone])
    world.tell(Balance(0, False))
    for name in world.stations:
        world.tell(Drain(0, name, False))
    for _ in range(60):
        for station in world.stations.values():
            if station.name != gone:
                world.connect(station)
        while _busy(world):
            world.commit()
            world.decide()
            for station in world.stations.values():
                world.hear(station)
                world.act(station)
        world.pass_time(0.5)


def _busy(world: World) -> bool:
    connected = [station for station in world.stations.values() if station.link is not None]
    return bool(world.batches or world.questions) or any(station.inbox or station.outbox for station in connected)
