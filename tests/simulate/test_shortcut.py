"""Subscriptions made in one go: cores and store know the same as after the long way, and go on from there."""

from __future__ import annotations

from tocsin.balance.control.thresholds import Thresholds
from tocsin.simulate.policy import Policy
from tocsin.simulate.scenarios.paper import Paper, paper
from tocsin.simulate.simulation import Level, Simulation
from tocsin.simulate.system import System

SMALL = Paper(
    subscribers=30,
    brokers=3,
    channels=2,
    backend_subscriptions=8,
    each=(2, 5),
    seconds=60,
    subscribing=30,
    rate=(40.0, 10.0),
)
EAGER = Policy(thresholds=Thresholds(chance=0, target=None, cool_down=20, settle=20))


def played(level: Level) -> System:
    simulation = Simulation(paper(SMALL, 3), 3, EAGER, level, verdict=True)
    simulation.run()
    return simulation.system


def known(system: System) -> dict[str, list[list[int]]]:
    """What store, coordinator, brokers and the subscriber itself know of everybody's subscriptions."""
    stored = system.store.read().held
    return {
        name: [
            sorted(stored.get(name, {})),
            sorted(held.subscription for held in system.coordinator.core.view.subscriptions_of(name)),
            *(
                sorted(stays[name].subscriptions)
                for host in system.brokers.values()
                if name in (stays := host.core.holdings.stays)
            ),
            sorted(person.diary.open),
        ]
        for name, person in system.people.items()
    }


def test_everybody_knows_what_they_know_after_the_long_way() -> None:
    short, long = known(played("counted")), known(played("frames"))
    assert short == long
    assert all(each == views[0] for views in short.values() for each in views)


def test_what_was_made_in_one_go_can_be_given_up_the_long_way() -> None:
    system = played("counted")
    for name, desired in system.desired.items():
        for ref in list(desired):
            system.unsubscribe(name, ref)
    system.advance(5.0)
    assert not any(view for views in known(system).values() for view in views)
