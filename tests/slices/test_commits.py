"""A commit counts only as a whole, from the owner by the present epoch, and exactly at the markers."""

from __future__ import annotations

import pytest

from tocsin.slices.commits import CommitQueue, OfferedCommit
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import Commit, Epoch, SlicePart
from tocsin.slices.ownership import Ownership


class CommitWorld:
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
    world = CommitWorld()
    assert world.offer("a", world.part(0, 10, 15))
    store = world.queue.next()
    assert store
    assert (store.markers, store.term) == ({0: 15}, 1)
    assert world.queue.markers == [10, 20, 30]
    assert len(world.queue.stored(store.number, 0.0)) == 1
    assert world.queue.markers == [15, 20, 30]
    assert world.queue.records == [5, 0, 0]


def test_a_slice_pauses_from_the_last_commit_of_its_old_owner_to_the_first_of_the_new_one() -> None:
    world = CommitWorld()
    stored = [("a", 10, 1.0), ("a", 15, 1.5), ("b", 20, 2.25), ("b", 25, 5.0)]
    pauses = []
    for node, begin, now in stored:
        if world.ownership[0].owner != node:
            world.ownership.give(0, node, world.ownership.next_epoch())
        assert world.offer(node, world.part(0, begin, begin + 5))
        store = world.queue.next()
        assert store
        world.queue.stored(store.number, now)
        pauses.append(world.ownership[0].pause)
    assert pauses == [None, None, 0.75, 0.75]


@pytest.mark.parametrize(("begin", "end"), [(9, 15), (11, 15), (0, 5), (10, 10), (10, 9)])
def test_what_begins_elsewhere_or_goes_nowhere_does_not_count(begin: int, end: int) -> None:
    world = CommitWorld()
    assert not world.offer("a", world.part(0, begin, end))
    assert world.queue.next() is None


def test_somebody_elses_slice_does_not_count() -> None:
    world = CommitWorld()
    assert not world.offer("b", world.part(0, 10, 15))


def test_a_zombie_by_an_old_epoch_does_not_count_though_it_begins_at_the_marker() -> None:
    world = CommitWorld()
    old = world.part(0, 10, 15)
    world.ownership.renew(0)
    assert not world.offer("a", old)
    world.ownership.give(0, "b", world.ownership.next_epoch())
    assert not world.offer("a", old)
    assert not world.offer("b", old)
    assert world.offer("b", world.part(0, 10, 15))


def test_a_batch_counts_whole_or_not_at_all() -> None:
    world = CommitWorld()
    world.ownership.give(1, "a", world.ownership.next_epoch())
    assert not world.offer("a", world.part(0, 10, 15), world.part(1, 19, 25))
    assert world.offer("a", world.part(0, 10, 15), world.part(1, 20, 25))


@pytest.mark.parametrize("slice_", [-1, 3, 99])
def test_a_slice_that_is_not_there_does_not_count(slice_: int) -> None:
    world = CommitWorld()
    assert not world.offer("a", SlicePart(slice_, Epoch(1, 1), 0, 5, 5))
    assert world.queue.positions(Commit(1, [SlicePart(slice_, Epoch(1, 1), 0, 5, 5)], [])) == {}


def test_a_slice_twice_in_a_batch_and_a_batch_of_nothing_do_not_count() -> None:
    world = CommitWorld()
    assert not world.offer("a", world.part(0, 10, 15), world.part(0, 15, 20))
    assert not world.offer("a")


def test_a_commit_that_comes_again_does_not_count_again() -> None:
    world = CommitWorld()
    assert world.offer("a", world.part(0, 10, 15))
    assert not world.offer("a", world.part(0, 10, 15))
    store = world.queue.next()
    assert store
    world.queue.stored(store.number, 0.0)
    assert not world.offer("a", world.part(0, 10, 15))


def test_what_waits_is_stored_together_and_in_order() -> None:
    world = CommitWorld()
    assert world.offer("a", world.part(0, 10, 15))
    first = world.queue.next()
    assert world.offer("a", world.part(0, 15, 18))
    assert world.offer("b", world.part(1, 20, 30))
    assert world.queue.next() is None
    assert world.queue.is_busy(0)
    assert world.queue.is_busy(1)
    assert first
    world.queue.stored(first.number, 0.0)
    second = world.queue.next()
    assert second
    assert second.markers == {0: 18, 1: 30}
    world.queue.stored(second.number, 0.0)
    assert not world.queue.is_busy(0)


def test_when_the_disk_refuses_nothing_that_waits_counts() -> None:
    world = CommitWorld()
    world.offer("a", world.part(0, 10, 15))
    store = world.queue.next()
    world.offer("a", world.part(0, 15, 18))
    assert store
    assert len(world.queue.failed(store.number)) == 2
    assert world.queue.stored(store.number, 0.0) == []
    assert world.queue.markers == [10, 20, 30]
    assert world.offer("a", world.part(0, 10, 12))


def test_when_a_store_fails_each_of_its_commits_is_tried_by_itself_and_the_one_at_fault_is_refused() -> None:
    world = CommitWorld()
    world.offer_next("abc")
    assert world.store_all(bad="b") == [("abc", ""), ("a", ""), ("b", "b"), ("c", "")]
    assert world.queue.markers == [15, 20, 35]
    assert world.offer("b", world.part(1, 20, 25))


def test_what_rests_on_a_commit_that_fails_is_refused_with_it_and_nothing_else() -> None:
    world = CommitWorld()
    world.offer_next("aabb")
    assert world.store(bad="a") == ("aabb", "")
    world.offer_next("c")
    assert world.store_all(bad="a") == [("c", ""), ("a", "aa"), ("b", ""), ("b", "")]
    assert world.queue.markers == [10, 30, 35]


def test_whoever_fails_again_and_again_does_so_alone_and_others_are_stored_in_between() -> None:
    world = CommitWorld()
    world.offer_next("abc")
    world.store_all(bad="a")
    for _ in range(20):
        world.offer_next("abc")
        assert sorted(world.store_all(bad="a")) == [("a", "a"), ("bc", "")]


def test_however_many_bad_commits_wait_others_wait_for_one_of_them_at_a_time() -> None:
    world = CommitWorld()
    for slice_ in (1, 2):
        world.ownership.give(slice_, "a", world.ownership.next_epoch())
    world.offer("a", world.part(0, 10, 15))
    world.store(bad="a")
    world.ownership.give(2, "c", world.ownership.next_epoch())
    world.offer("a", world.part(0, 10, 15))
    world.offer("a", world.part(1, 20, 25))
    world.offer_next("c")
    assert world.store_all(bad="a") == [("c", ""), ("a", "a"), ("a", "a")]


def failures_of_all(offers: int) -> int:
    """How often a store of several fails when one node offers what is bad whenever it is trusted again."""
    world, failures = CommitWorld(), 0
    for _ in range(offers):
        world.offer_next("abc")
        together = world.store(bad="a")[0]
        failures += together == "abc"
        good = together != "abc" and failures > 0
        while any(world.queue.is_busy(slice_) for slice_ in range(3)):
            world.store(bad="" if good else "a")
    return failures


def test_who_is_at_fault_whenever_it_is_trusted_is_trusted_later_and_later() -> None:
    assert failures_of_all(50) <= 6
    assert failures_of_all(400) <= 9


def test_when_it_was_nobodys_fault_all_are_soon_stored_together_again() -> None:
    world = CommitWorld()
    for _ in range(5):
        world.offer_next("abc")
        assert all(whose == refused for whose, refused in world.store_all(bad="abc") if len(whose) == 1)
    world.offer_next("abc")
    assert world.store_all() == [("a", ""), ("b", ""), ("c", "")]
    world.offer_next("abc")
    assert world.store_all() == [("abc", "")]
