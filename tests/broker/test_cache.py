"""The cache never holds more than it may, and never answers with a gap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.broker.cache import OVERHEAD, EvictionPolicy, LeastRecentlyUsed, LeastSubscribed, ResultCache, TimeToLive

SIZE = OVERHEAD + 10


def policies() -> list[EvictionPolicy]:
    return [LeastRecentlyUsed(), TimeToLive(5.0), LeastSubscribed(lambda be: be)]


def fill(cache: ResultCache, bes: list[int], now: float = 0.0) -> None:
    for be in bes:
        cache.open(be, 0)
        cache.put(now, be, 1, b"x" * 10)


def test_the_line_not_used_for_the_longest_time_loses_its_oldest() -> None:
    cache = ResultCache(2 * SIZE, LeastRecentlyUsed())
    fill(cache, [1, 2])
    cache.after(1, 0)
    fill(cache, [3])
    assert cache.after(2, 0) is None
    assert cache.after(1, 0) == [(1, b"x" * 10)]
    assert (cache.figures.hits, cache.figures.misses, cache.figures.evicted) == (2, 1, 1)


def test_the_least_subscribed_line_loses_its_oldest() -> None:
    subscribers = {1: 5, 2: 1, 3: 3}
    cache = ResultCache(2 * SIZE, LeastSubscribed(subscribers.__getitem__))
    fill(cache, [1, 2, 3])
    assert [cache.after(be, 0) is None for be in (1, 2, 3)] == [False, True, False]


def test_results_leave_when_their_time_has_passed() -> None:
    cache = ResultCache(10 * SIZE, TimeToLive(5.0))
    fill(cache, [1])
    fill(cache, [2], now=5.0)
    assert cache.after(1, 0) is None
    assert cache.bytes == SIZE


@given(
    st.integers(0, 2),
    st.integers(0, 6),
    st.lists(st.tuples(st.sampled_from(["put", "ask", "close", "open"]), st.integers(1, 4), st.integers(0, 30))),
)
def test_an_answer_is_complete_or_none_and_the_bound_is_kept(
    which: int, room: int, steps: list[tuple[str, int, int]]
) -> None:
    cache = ResultCache(room * SIZE, policies()[which])
    there: dict[int, list[int]] = {}
    for turn, (what, be, number) in enumerate(steps):
        if what == "open" and be not in there:
            cache.open(be, turn)
            there[be] = []
        elif what == "close":
            cache.close(be)
            there.pop(be, None)
        elif what == "put" and be in there:
            cache.put(float(turn), be, turn + 1, b"x" * 10)
            there[be].append(turn + 1)
        elif what == "ask":
            found = cache.after(be, number)
            assert found is None or [e for e, _ in found] == [e for e in there[be] if e > number]
        assert 0 <= cache.bytes <= room * SIZE
