"""Which ids count as seen at a node: by positions alone, whatever it was told or not."""

from __future__ import annotations

from tocsin.data.nodes.ids import BatchInHand, IdsInHand


def held(*batches: tuple[dict[int, tuple[int, int]], str]) -> IdsInHand:
    """Batches in hand, each with the ids of its letters."""
    found = IdsInHand()
    for ranges, letters in batches:
        found.hold(BatchInHand(ranges, frozenset(letter.encode() for letter in letters)))
    return found


def known(ids: IdsInHand, letters: str) -> str:
    return "".join(letter for letter in letters if letter.encode() in ids)


def test_what_was_processed_before_a_start_is_known_and_what_came_after_is_not() -> None:
    ids = held(({0: (0, 10), 1: (0, 5)}, "ab"), ({0: (10, 20)}, "c"))
    ids.begin({0: 20}, {0: 0, 1: 0})
    assert known(ids, "abc") == "abc"
    ids.begin({0: 10}, {0: 0, 1: 0})
    assert known(ids, "abc") == "ab"
    ids.begin({1: 0}, {0: 0, 1: 0})
    assert known(ids, "abc") == ""


def test_what_the_dataset_has_need_not_be_kept() -> None:
    ids = held(({0: (0, 10), 1: (0, 5)}, "ab"), ({0: (10, 20)}, "c"))
    ids.begin({0: 20}, {0: 10, 1: 4})
    assert known(ids, "abc") == "abc"
    ids.begin({0: 20}, {0: 10, 1: 5})
    assert known(ids, "abc") == "c"
    assert len(ids) == 1


def test_a_batch_is_forgotten_whole() -> None:
    ids = held(({0: (0, 10), 1: (0, 5)}, "ab"), ({0: (10, 20)}, "c"))
    ids.forget([1])
    assert known(ids, "abc") == "c"


def test_a_slice_is_known_as_far_as_there_is_no_gap() -> None:
    ids = held(({0: (20, 30)}, ""), ({0: (10, 20)}, ""), ({1: (0, 9)}, ""))
    assert [ids.reach(0, position) for position in (0, 10, 15, 40)] == [0, 30, 30, 40]
    assert ids.reach(1, 0) == 9
    assert ids.reach(2, 7) == 7
