"""Brokers, coordinator and subscribers together: nobody misses anything, whatever ends, breaks or moves meanwhile."""

from __future__ import annotations

import pytest

from tests.together.system import Person, System


def missed(system: System, person: Person) -> dict[int, tuple[list[int], list[int]]]:
    """Of each subscription that was confirmed: what was found for it and what was had, where they differ."""
    wrong = {}
    for subscription, since in person.since.items():
        found = [execution for execution in system.data.found[subscription] if execution > since]
        had = person.had.get(subscription, [])
        if found != had:
            wrong[subscription] = (found, had)
    return wrong


def begun(brokers: list[str], people: int, seed: int = 0) -> System:
    """A system whose people have two subscriptions each, some of them shared."""
    system = System(brokers, seed)
    for number in range(people):
        person = system.join(f"p{number}")
        system.subscribe(person, "c", v=number % 3)
        system.subscribe(person, "d", v=number)
    system.advance(2)
    assert [len(person.since) for person in system.people] == [2] * people
    return system


def test_everybody_is_told_everything_once_and_in_order() -> None:
    system = begun(["a", "b"], 5)
    for _ in range(10):
        system.execute("c")
        system.execute("d")
    assert [missed(system, person) for person in system.people] == [{}] * 5
    assert all(len(had) == 10 for person in system.people for had in person.had.values())


def test_a_broker_is_drained_while_it_delivers_and_nobody_notices() -> None:
    system = begun(["a", "b"], 6)
    system.drain("a")
    for _ in range(40):
        system.execute("c")
        system.execute("d")
        system.advance(0.5)
    assert not system.nodes["a"].sessions
    assert len(system.nodes["b"].sessions) == 6
    assert [missed(system, person) for person in system.people] == [{}] * 6


def test_the_subscribers_of_a_broker_that_dies_go_on_elsewhere_from_their_cursors() -> None:
    system = begun(["a", "b", "x"], 6)
    system.execute("c")
    system.kill("a")
    for _ in range(40):
        system.execute("c")
        system.execute("d")
        system.advance(0.5)
    system.advance(10)
    assert sum(len(node.sessions) for node in system.nodes.values()) == 6
    assert [missed(system, person) for person in system.people] == [{}] * 6


@pytest.mark.parametrize("seed", range(100))
def test_nobody_misses_anything_whatever_happens(seed: int) -> None:
    system = begun(["a", "b", "x"], 5, seed)
    choose = system.random.choice
    for _ in range(60):
        living = sorted(system.nodes)
        match choose(["run", "run", "run", "wait", "wait", "cut", "data", "kill", "start", "drain", "keep", "restart"]):
            case "run":
                system.execute(choose("cd"), lambda be: system.random.random() < 0.7)
            case "wait":
                system.advance(choose([0.25, 1.0, 4.0]))
            case "cut":
                system.cut(choose(system.people))
            case "data":
                system.lose_data(choose(living))
            case "kill" if len(living) > 1:
                system.kill(choose(living))
            case "start":
                system.start(choose("abx"))
            case "drain":
                system.drain(choose("abx"))
            case "keep":
                system.drain(choose("abx"), on=False)
            case "restart":
                system.restart_coordinator()
    for name in "abx":
        system.start(name)
        system.drain(name, on=False)
    system.advance(90)
    assert any(person.had for person in system.people)
    assert {person.name: missed(system, person) for person in system.people} == {p.name: {} for p in system.people}
    assert sum(len(node.sessions) for node in system.nodes.values()) == len(system.people)
