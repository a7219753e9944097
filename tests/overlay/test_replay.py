"""A head's log: numbered, de-duplicated by the publisher's numbers, bounded, and there when it is stored."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.content.language import parse
from tocsin.model.histories import NEWEST
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.messages import Routed
from tocsin.overlay.replay import KeptLog, ReplayLog

EVERYTHING = parse("n exists")
STEPS = st.lists(st.tuples(st.sampled_from("pq"), st.integers(1, 6), st.booleans()), max_size=40)


@given(STEPS, st.integers(1, 5))
def test_each_number_of_a_publisher_is_stored_once_and_the_latest_are_kept(
    steps: list[tuple[str, int, bool]], most: int
) -> None:
    log, appended, stored, last = ReplayLog("h", KeptLog(), most), [], 0, {"p": 0, "q": 0}
    for publisher, sequence, store in steps:
        publication = log.append(publisher, sequence, {"n": float(sequence)})
        assert (publication is None) == (sequence <= last[publisher])
        if publication:
            last[publisher] = sequence
            appended.append(publication)
        if store:
            done = log.stored(len(appended))
            assert done == appended[stored:]
            stored = len(appended)
        assert log.last == stored
        assert log.stored_number(publisher) == max(
            (p.sequence for p in appended[:stored] if p.publisher == publisher), default=0
        )
    assert [each.offset for each in appended] == list(range(1, len(appended) + 1))
    kept, upto = log.piece(0, [EVERYTHING], 100, 10**6)
    assert (kept, upto) == (appended[log.oldest - 1 : stored], stored)
    assert len(kept) >= min(most, stored)


def begun(*incarnations: tuple[str, int]) -> ReplayLog:
    kept = KeptLog()
    for incarnation, last in incarnations:
        kept.last = last
        kept.begin(incarnation)
    return ReplayLog("h", kept, 10)


def test_a_log_knows_how_far_it_is_the_same_as_under_other_incarnations() -> None:
    log = begun(("one", 0), ("two", 8), ("three", 5), ("four", 9))
    assert log.incarnation == "four"
    assert [log.shared_until(known) for known in ("one", "two", "three")] == [5, 5, 9]
    assert log.shared_until("four") > 10**15
    assert (log.shared_until("lost"), log.continues("lost"), log.continues("two")) == (-1, False, True)
    assert (log.shared_until(""), log.continues("")) == (0, False)


def test_a_log_remembers_only_so_many_incarnations() -> None:
    kept = KeptLog()
    for number in range(NEWEST + 1):
        kept.begin(str(number))
    assert [kept.history[0].incarnation, kept.history[-1].incarnation] == ["1", str(NEWEST)]


def test_a_log_goes_on_from_what_was_kept() -> None:
    kept = KeptLog([Routed("h", 7, "p", 3, {"n": 1.0}), Routed("h", 8, "p", 4, {"n": 2.0})], 8, {"p": 4, "q": 9})
    log = ReplayLog("h", kept, 10)
    assert (log.oldest, log.last) == (7, 8)
    assert log.append("p", 4, {}) is None
    assert log.append("q", 9, {}) is None
    publication = log.append("p", 5, {})
    assert publication
    assert publication.offset == 9
    found, upto = log.piece(7, [parse("n > 0"), parse("n > 1")], 100, 10**6)
    assert ([each.offset for each in found], upto) == ([8], 8)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=30),
    st.integers(1, 8),
    st.integers(1, 500),
    st.integers(0, 30),
    st.lists(st.sampled_from(["n = 1", "n > 1", "n < 2"]), min_size=1, max_size=3),
)
def test_pieces_are_bounded_and_leave_nothing_out(
    numbers: list[int], most: int, most_bytes: int, cursor: int, filters: list[str]
) -> None:
    log = ReplayLog("h", KeptLog(), 20)
    for sequence, number in enumerate(numbers, 1):
        log.append("p", sequence, {"n": float(number)})
    log.stored(len(numbers))
    wanted, found, upto = [parse(text) for text in filters], list[Routed](), cursor
    expected, _ = log.piece(cursor, wanted, 100, 10**6)
    while upto < log.last:
        piece, end = log.piece(upto, wanted, most, most_bytes)
        assert max(upto, log.oldest - 1) < end <= max(upto, log.oldest - 1) + most
        assert len(piece) == 1 or sum(len(msgspec.json.encode(each)) for each in piece) <= most_bytes
        assert all(upto < each.offset <= end for each in piece)
        found, upto = found + piece, end
    assert found == expected
    assert [each.offset for each in expected] == [
        offset
        for offset, number in enumerate(numbers, 1)
        if offset > cursor and offset >= log.oldest and any(each.matches({"n": float(number)}) for each in wanted)
    ]


@given(st.lists(st.integers(0, 500), min_size=1, max_size=40), st.integers(1, 20), st.integers(1, 2000))
def test_a_log_has_no_more_bytes_than_it_may_but_for_the_latest(lengths: list[int], most: int, most_bytes: int) -> None:
    log = ReplayLog("h", KeptLog(), most, most_bytes)
    appended = [log.append("p", number, {"n": "x" * length}) for number, length in enumerate(lengths, 1)]
    for number in range(1, len(lengths) + 1):
        log.stored(number)
        kept, upto = log.piece(0, [EVERYTHING], 100, 10**6)
        assert (kept, upto) == (appended[log.oldest - 1 : number], number)
        sizes = [len(msgspec.json.encode(each)) for each in kept]
        assert sum(sizes) <= most_bytes or len(sizes) == 1
    again = ReplayLog("h", KeptLog([each for each in appended if each], len(lengths)), most, most_bytes)
    kept, _ = again.piece(0, [EVERYTHING], 100, 10**6)
    assert kept == appended[again.oldest - 1 :]
    assert again.oldest == max(log.oldest, len(lengths) - most + 1)


def test_a_full_log_is_not_moved_for_each_publication(monkeypatch: pytest.MonkeyPatch) -> None:
    cuts, cut = list[int](), ReplayLog._cut

    def count(log: ReplayLog) -> None:
        cuts.append(log.last)
        cut(log)

    monkeypatch.setattr(ReplayLog, "_cut", count)
    log = ReplayLog("h", KeptLog(), 10_000, 100_000)
    for number in range(1, 5001):
        log.append("p", number, {"n": "x" * 50})
        log.stored(number)
    kept = log.last - log.oldest + 1
    assert 500 < kept < 1500
    assert len(cuts) <= 8 * 5000 / kept


def test_one_publisher_cannot_fill_a_heads_memory() -> None:
    limits = OverlayLimits()
    log = ReplayLog("h", KeptLog(), limits.replay_publications, limits.replay_bytes)
    large = "x" * 60_000
    for number in range(1, 2001):
        log.append("p", number, {"n": large})
        log.stored(number)
    assert log.last - log.oldest + 1 == limits.replay_bytes // len(msgspec.json.encode(log.find("p", 2000)))
