"""A commit counts only as a whole, from the owner by the present epoch, and exactly at the markers."""

from __future__ import annotations

import pytest

from tocsin.slices.commits import CommitQueue, OfferedCommit
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import Commit, Epoch, SlicePart
from tocsin.slices.ownership import Ownership


class Desk:
    """Three slices, the first of node a, the second of node b and so on, with markers at 10, 20 and 30."""

    def __init__(self) -> None:
        self.ownership = Ownership(1, 3, SliceLimits())
        for number, name in enumerate("abc"):
            self.ownership.give(number, name, self.ownership.next_epoch())
        self.queue = CommitQueue(1, [10, 20, 30], self.ownership)

    def part(self, slice_: int, begin: int, end: int) -> SlicePart:
        return SlicePart(slice_, self.ownership[slice_].epoch, begin, end, end - begin)

    def offer(self, node: str, *parts: SlicePart) -> bool:
        return self.queue.offer(OfferedCommit(node, 1, Commit(1, list(parts), ["file"])))

    def offer_next(self, nodes: str) -> None:
        """Each of these nodes offers five more records of its slice."""
        for node in nodes:
            slice_ = "abc".index(node)
            begin = self.queue.positions(Commit(1, [self.part(slice_, 0, 0)], []))[slice_]
            assert self.offer(node, self.part(slice_, begin, begin + 5))

    def store(self, bad: str = "") -> tuple[str, str]:
        """Stores what is to be stored next, unless it has a commit of a node that is bad: whose it is, and was refused.

        What is stored together must begin at the markers.
        """
        store = self.queue.next()
        assert store is not None
        reached = list(self.queue.markers)
        for part in (part for commit in store.commits for part in commit.parts):
            assert part.begin == reached[part.slice]
            reached[part.slice] = part.end
        refused = []
        if set(store.nodes) & set(bad):
            refused = self.queue.failed(store.number)
        else:
            self.queue.stored(store.number, 0.0)
        return "".join(store.nodes), "".join(offered.node for offered in refused)

    def store_all(self, bad: str = "") -> list[tuple[str, str]]:
        """The same, until nothing waits."""
        told: list[tuple[str, str]] = []
        while not told or any(self.queue.is_busy(slice_) for slice_ in range(3)):
            told.append(self.store(bad))
        return told


def test_what_begins_at_the_marker_counts_once_it_is_stored() -> None:
    desk = Desk()
    assert desk.offer("a", desk.part(0, 10, 15))
    store = desk.queue.next()
    assert store
    assert (store.markers, store.term) == ({0: 15}, 1)
    assert desk.queue.markers == [10, 20, 30]
    assert len(desk.queue.stored(store.number, 0.0)) == 1
    assert desk.queue.markers == [15, 20, 30]
    assert desk.queue.records == [5, 0, 0]


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


@pytest.mark.parametrize("slice_", [-1, 3, 99])
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
    assert desk.queue.markers == [10, 20, 30]
    assert desk.offer("a", desk.part(0, 10, 12))


def test_when_a_store_fails_each_of_its_commits_is_tried_by_itself_and_the_one_at_fault_is_refused() -> None:
    desk = Desk()
    desk.offer_next("abc")
    assert desk.store_all(bad="b") == [("abc", ""), ("a", ""), ("b", "b"), ("c", "")]
    assert desk.queue.markers == [15, 20, 35]
    assert desk.offer("b", desk.part(1, 20, 25))


def test_what_rests_on_a_commit_that_fails_is_refused_with_it_and_nothing_else() -> None:
    desk = Desk()
    desk.offer_next("aabb")
    assert desk.store(bad="a") == ("aabb", "")
    desk.offer_next("c")
    assert desk.store_all(bad="a") == [("c", ""), ("a", "aa"), ("b", ""), ("b", "")]
    assert desk.queue.markers == [10, 30, 35]


def test_whoever_fails_again_and_again_does_so_alone_and_others_are_stored_in_between() -> None:
    desk = Desk()
    desk.offer_next("abc")
    desk.store_all(bad="a")
    for _ in range(20):
        desk.offer_next("abc")
        assert sorted(desk.store_all(bad="a")) == [("a", "a"), ("bc", "")]


def test_however_many_bad_commits_wait_others_wait_for_one_of_them_at_a_time() -> None:
    desk = Desk()
    for slice_ in (1, 2):
        desk.ownership.give(slice_, "a", desk.ownership.next_epoch())
    desk.offer("a", desk.part(0, 10, 15))
    desk.store(bad="a")
    desk.ownership.give(2, "c", desk.ownership.next_epoch())
    desk.offer("a", desk.part(0, 10, 15))
    desk.offer("a", desk.part(1, 20, 25))
    desk.offer_next("c")
    assert desk.store_all(bad="a") == [("c", ""), ("a", "a"), ("a", "a")]


def failures_of_all(offers: int) -> int:
    """How often a store of several fails when one node offers what is bad whenever it is trusted again."""
    desk, failures = Desk(), 0
    for _ in range(offers):
        desk.offer_next("abc")
        together = desk.store(bad="a")[0]
        failures += together == "abc"
        good = together != "abc" and failures > 0
        while any(desk.queue.is_busy(slice_) for slice_ in range(3)):
            desk.store(bad="" if good else "a")
    return failures


def test_who_is_at_fault_whenever_it_is_trusted_is_trusted_later_and_later() -> None:
    assert failures_of_all(50) <= 6
    assert failures_of_all(400) <= 9


def test_when_it_was_nobodys_fault_all_are_soon_stored_together_again() -> None:
    desk = Desk()
    for _ in range(5):
        desk.offer_next("abc")
        assert all(whose == refused for whose, refused in desk.store_all(bad="abc") if len(whose) == 1)
    desk.offer_next("abc")
    assert desk.store_all() == [("a", ""), ("b", ""), ("c", "")]
    desk.offer_next("abc")
    assert desk.store_all() == [("abc", "")]
