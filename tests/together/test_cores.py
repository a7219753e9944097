"""Brokers, coordinator and subscribers together: nobody misses anything, whatever ends, breaks or moves meanwhile."""

from __future__ import annotations

from tocsin.client.core.actions import ConnectionState
from tocsin.coordinator.events import Drain
from tocsin.simulate.system import System


def wrong(system: System) -> list[str]:
    """What anybody missed, had twice or out of order."""
    return [sentence for diary in system.diaries.values() for sentence in diary.wrong(system.cluster)]


def begun(brokers: list[str], people: int, seed: int = 0) -> System:
    """A system whose people have two subscriptions each, some of them shared."""
    system = System(brokers, seed)
    system.advance(2)
    for number in range(people):
        system.join(f"p{number}")
        system.subscribe(f"p{number}", "c", v=number % 3)
        system.subscribe(f"p{number}", "d", v=number)
    system.advance(3)
    assert [len(diary.open) for diary in system.diaries.values()] == [2] * people
    return system


def execute(system: System, times: int, pause: float) -> None:
    """Both channels, so often, with something for everybody each time."""
    for _ in range(times):
        system.execute("c")
        system.execute("d")
        system.advance(pause)
    system.advance(2)


def served_by(system: System, broker: str) -> list[str]:
    """Whose connections a broker has."""
    stays = system.brokers[broker].core.holdings.stays
    return [name for name, stay in stays.items() if stay.session]


def test_everybody_is_told_everything_once_and_in_order() -> None:
    system = begun(["a", "b"], 5)
    execute(system, 10, 0.1)
    assert wrong(system) == []
    assert all(len(span.had) == 10 for diary in system.diaries.values() for span in diary.spans)


def test_a_broker_is_drained_while_it_delivers_and_nobody_notices() -> None:
    system = begun(["a", "b"], 6)
    system.ask(Drain(0, "a"))
    execute(system, 40, 0.5)
    assert served_by(system, "a") == []
    assert len(served_by(system, "b")) == 6
    assert wrong(system) == []


def test_the_subscribers_of_a_broker_that_dies_go_on_elsewhere_from_their_cursors() -> None:
    system = begun(["a", "b", "x"], 6)
    system.execute("c")
    system.brokers["a"].crash()
    execute(system, 40, 0.5)
    system.advance(10)
    assert len(served_by(system, "b")) + len(served_by(system, "x")) == 6
    assert wrong(system) == []


def test_delivery_goes_on_without_the_coordinator() -> None:
    system = begun(["a", "b"], 4)
    system.coordinator.crash()
    execute(system, 10, 0.5)
    assert all(len(span.had) == 10 for diary in system.diaries.values() for span in diary.spans)


def test_what_is_executed_while_a_broker_is_cut_off_from_the_data_cluster_comes_later() -> None:
    system = begun(["a"], 3)
    system.network.sever("a", "data")
    execute(system, 10, 0.5)
    assert all(span.had == [] for diary in system.diaries.values() for span in diary.spans)
    system.network.mend("a", "data")
    system.advance(20)
    assert wrong(system) == []
    assert all(len(span.had) == 10 for diary in system.diaries.values() for span in diary.spans)


def test_a_subscriber_that_vanishes_on_its_way_to_another_broker_misses_nothing_when_it_is_back() -> None:
    system = begun(["a", "b"], 2)
    for person in system.people.values():
        person.moving = lambda person: system.crash_person(person.host)
    system.ask(Drain(0, "a"))
    execute(system, 10, 0.5)
    gone = [name for name, person in system.people.items() if not person.alive]
    assert gone
    for name in gone:
        system.join(name)
    system.advance(10)
    assert {person.state for person in system.people.values()} == {ConnectionState.SERVING}
    assert wrong(system) == []
