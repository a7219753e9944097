"""A head's log: numbered, de-duplicated by the publisher's numbers, bounded, and there when it is stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.content.language import parse
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
        assert log.sequence(publisher) == max(
            (p.sequence for p in appended[:stored] if p.publisher == publisher), default=0
        )
    assert [each.offset for each in appended] == list(range(1, len(appended) + 1))
    kept = log.after(0, [EVERYTHING])
    assert kept == appended[log.oldest - 1 : stored]
    assert len(kept) >= min(most, stored)


def test_a_log_goes_on_from_what_was_kept() -> None:
    kept = KeptLog([Routed("h", 7, "p", 3, {"n": 1.0}), Routed("h", 8, "p", 4, {"n": 2.0})], 8, {"p": 4, "q": 9})
    log = ReplayLog("h", kept, 10)
    assert (log.oldest, log.last) == (7, 8)
    assert log.append("p", 4, {}) is None
    assert log.append("q", 9, {}) is None
    publication = log.append("p", 5, {})
    assert publication
    assert publication.offset == 9
    assert [each.offset for each in log.after(7, [parse("n > 0"), parse("n > 1")])] == [8]
