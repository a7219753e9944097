"""A commit counts only as a whole, from the owner by the present epoch, and exactly at the markers."""

from __future__ import annotations

import pytest

from tocsin.slices.commits import CommitQueue, OfferedCommit
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import Commit, Epoch, SlicePart
from tocsin.slices.ownership import Ownership


class Desk:
    """Two slices, the first of node a, the second of node b, with markers at 10 and 20."""

    def __init__(self) -> None:
        self.ownership = Ownership(1, 2, SliceLimits())
        for number, name in enumerate("ab"):
            self.ownership.give(number, name, self.ownership.next_epoch())
        self.queue = CommitQueue(1, [10, 20], self.ownership)

    def part(self, slice_: int, begin: int, end: int) -> SlicePart:
        return SlicePart(slice_, self.ownership[slice_].epoch, begin, end, end - begin)

    def offer(self, node: str, *parts: SlicePart) -> bool:
        return self.queue.offer(OfferedCommit(node, 1, Commit(1, list(parts), ["file"])))


def test_what_begins_at_the_marker_counts_once_it_is_stored() -> None:
    desk = Desk()
    assert desk.offer("a", desk.part(0, 10, 15))
    store = desk.queue.next()
    assert store
    assert (store.markers, store.term) == ({0: 15}, 1)
    assert desk.queue.markers == [10, 20]
    assert len(desk.queue.stored(store.number, 0.0)) == 1
    assert desk.queue.markers == [15, 20]
    assert desk.queue.records == [5, 0]


def test_a_slice_pauses_from_the_last_commit_of_its_old_owner_to_the_first_of_the_new_one() -> None:
    desk = Desk()
    stored = [("a", 10, 1.0), ("a", 15, 1.5), ("b", 20, 2.25), ("b", 25, 5.0)]
    pauses = []
    for node, begin, now in stored:
        if desk.ownership[0].owner != node:
            desk.ownership.give(0, node, desk.ownership.next_epoch())
        assert desk.offer(node, desk.part(0, begin, begin + 5))
        store = desk.queue.next()
        assert store
        desk.queue.stored(store.number, now)
        pauses.append(desk.ownership[0].pause)
    assert pauses == [None, None, 0.75, 0.75]


@pytest.mark.parametrize(("begin", "end"), [(9, 15), (11, 15), (0, 5), (10, 10), (10, 9)])
def test_what_begins_elsewhere_or_goes_nowhere_does_not_count(begin: int, end: int) -> None:
    desk = Desk()
    assert not desk.offer("a", desk.part(0, begin, end))
    assert desk.queue.next() is None


def test_somebody_elses_slice_does_not_count() -> None:
    desk = Desk()
    assert not desk.offer("b", desk.part(0, 10, 15))


def test_a_zombie_by_an_old_epoch_does_not_count_though_it_begins_at_the_marker() -> None:
    desk = Desk()
    old = desk.part(0, 10, 15)
    desk.ownership.renew(0)
    assert not desk.offer("a", old)
    desk.ownership.give(0, "b", desk.ownership.next_epoch())
    assert not desk.offer("a", old)
    assert not desk.offer("b", old)
    assert desk.offer("b", desk.part(0, 10, 15))


def test_a_batch_counts_whole_or_not_at_all() -> None:
    desk = Desk()
    desk.ownership.give(1, "a", desk.ownership.next_epoch())
    assert not desk.offer("a", desk.part(0, 10, 15), desk.part(1, 19, 25))
    assert desk.offer("a", desk.part(0, 10, 15), desk.part(1, 20, 25))


@pytest.mark.parametrize("slice_", [-1, 2, 99])
def test_a_slice_that_is_not_there_does_not_count(slice_: int) -> None:
    desk = Desk()
    assert not desk.offer("a", SlicePart(slice_, Epoch(1, 1), 0, 5, 5))
    assert desk.queue.positions(Commit(1, [SlicePart(slice_, Epoch(1, 1), 0, 5, 5)], [])) == {}


def test_a_slice_twice_in_a_batch_and_a_batch_of_nothing_do_not_count() -> None:
    desk = Desk()
    assert not desk.offer("a", desk.part(0, 10, 15), desk.part(0, 15, 20))
    assert not desk.offer("a")


def test_a_commit_that_comes_again_does_not_count_again() -> None:
    desk = Desk()
    assert desk.offer("a", desk.part(0, 10, 15))
    assert not desk.offer("a", desk.part(0, 10, 15))
    store = desk.queue.next()
    assert store
    desk.queue.stored(store.number, 0.0)
    assert not desk.offer("a", desk.part(0, 10, 15))


def test_what_waits_is_stored_together_and_in_order() -> None:
    desk = Desk()
    assert desk.offer("a", desk.part(0, 10, 15))
    first = desk.queue.next()
    assert desk.offer("a", desk.part(0, 15, 18))
    assert desk.offer("b", desk.part(1, 20, 30))
    assert desk.queue.next() is None
    assert desk.queue.is_busy(0)
    assert desk.queue.is_busy(1)
    assert first
    desk.queue.stored(first.number, 0.0)
    second = desk.queue.next()
    assert second
    assert second.markers == {0: 18, 1: 30}
    desk.queue.stored(second.number, 0.0)
    assert not desk.queue.is_busy(0)


def test_when_the_disk_refuses_nothing_that_waits_counts() -> None:
    desk = Desk()
    desk.offer("a", desk.part(0, 10, 15))
    store = desk.queue.next()
    desk.offer("a", desk.part(0, 15, 18))
    assert store
    assert len(desk.queue.failed(store.number)) == 2
    assert desk.queue.stored(store.number, 0.0) == []
    assert desk.queue.markers == [10, 20]
    assert desk.offer("a", desk.part(0, 10, 12))
