"""Brokers, coordinator and subscribers when a channel is dropped, or the data cluster has other data than before."""

from __future__ import annotations

from tests.together.test_cores import execute, wrong
from tocsin.simulate.system import System


def begun(people: int = 3) -> System:
    """People on two brokers, who all have the same channel, each in a spelling of their own."""
    system = System(["a", "b"], 0)
    for channel in ("c", "d"):
        system.cluster.absent.add(channel)
        system.create(channel)
    system.advance(2)
    for number in range(people):
        system.join(f"p{number}")
        system.subscribe(f"p{number}", "c" if number % 2 else "C", v=1)
    system.advance(3)
    return system


def had(system: System) -> list[int]:
    """How many notes each has had."""
    return [sum(len(span.had) for span in diary.spans) for diary in system.diaries.values()]


def stored(system: System) -> set[tuple[str, int]]:
    """What the coordinator has stored: channels and numbers."""
    held = [each for name in system.people for each in system.coordinator.core.view.subscriptions_of(name)]
    return {(each.channel, each.subscription) for each in held}


def test_a_channel_is_one_channel_in_any_spelling() -> None:
    system = begun()
    execute(system, 5, 0.2)
    assert had(system) == [5, 5, 5]
    assert wrong(system) == []
    assert stored(system) == {("c", system.cluster.be("c", {"v": 1}))}


def test_who_asks_later_in_another_spelling_begins_with_what_is_found_from_then_on() -> None:
    system = begun(1)
    execute(system, 3, 0.2)
    system.join("p1")
    system.subscribe("p1", "C", v=1)
    system.advance(3)
    execute(system, 2, 0.2)
    assert had(system) == [5, 2]
    assert wrong(system) == []


def test_a_dropped_channel_ends_for_all_and_what_is_created_anew_is_another() -> None:
    system = begun()
    execute(system, 3, 0.2)
    system.drop("c")
    system.create("c")
    system.advance(3)
    assert stored(system) == set()
    assert system.desired == {"p0": {}, "p1": {}, "p2": {}}
    system.subscribe("p0", "c", v=1)
    system.advance(3)
    execute(system, 2, 0.2)
    assert had(system) == [5, 3, 3]
    assert wrong(system) == []


def test_who_was_not_there_when_a_channel_was_dropped_learns_of_it_and_does_not_get_the_new_one() -> None:
    system = begun()
    system.network.sever("p0", "a")
    system.network.sever("p0", "b")
    system.advance(3)
    system.drop("c")
    system.create("c")
    system.advance(1)
    system.network.mend_all()
    system.advance(40)
    assert system.desired["p0"] == {}
    assert stored(system) == set()


def test_an_ordinary_restart_of_the_data_cluster_changes_nothing() -> None:
    system = begun()
    execute(system, 3, 0.2)
    before = stored(system)
    system.data.crash()
    system.start_data()
    system.advance(5)
    execute(system, 3, 0.2)
    assert had(system) == [6, 6, 6]
    assert wrong(system) == []
    assert stored(system) == before


def test_an_older_copy_of_the_data_keeps_nothing_from_anybody() -> None:
    system = begun()
    execute(system, 3, 0.2)
    copy = system.cluster.copy()
    execute(system, 4, 0.2)
    system.crash_person("p1")
    system.restore(copy)
    system.start_data()
    system.advance(5)
    execute(system, 4, 0.2)
    system.join("p1")
    system.advance(10)
    assert wrong(system) == []
    assert had(system) == [11, 11, 11]


def test_a_fresh_data_cluster_goes_on_with_everybody_once_its_channels_are_there() -> None:
    system = begun()
    execute(system, 3, 0.2)
    system.restore(None)
    system.start_data()
    system.advance(5)
    assert system.brokers["a"].core.holdings.stays | system.brokers["b"].core.holdings.stays
    assert system.brokers["a"].core.holdings.missing == ["c"] or system.brokers["b"].core.holdings.missing == ["c"]
    system.create("c")
    system.create("d")
    system.advance(10)
    execute(system, 4, 0.2)
    assert had(system) == [7, 7, 7]
    assert wrong(system) == []
    assert stored(system) == {("c", system.cluster.be("c", {"v": 1}))}


def test_a_drop_ends_nothing_of_other_channels_that_were_started_with_the_dropped_one() -> None:
    system = begun()
    system.data.crash()
    system.start_data()
    system.advance(10)
    system.drop("d")
    system.advance(1)
    system.subscribe("p0", "c", v=2)
    system.advance(3)
    execute(system, 2, 0.2)
    assert system.desired["p0"].keys() == {1, 4}
    assert had(system) == [4, 2, 2]
    assert wrong(system) == []


def test_what_was_lost_and_is_restored_does_not_come_again() -> None:
    system = begun()
    execute(system, 3, 0.2)
    copy = system.cluster.copy()
    system.restore(None)
    system.start_data()
    system.create("c")
    system.advance(10)
    execute(system, 2, 0.2)
    system.restore(copy)
    system.start_data()
    system.advance(10)
    execute(system, 2, 0.2)
    assert had(system) == [7, 7, 7]
    assert wrong(system) == []
