"""Results: numbered without gaps, pulled alike from memory and from files, and gone after their time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tocsin.data import pulls
from tocsin.data.results import Cache, ChannelResults

pytestmark = pytest.mark.spark

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
_COLUMNS = pa.schema([("__be", pa.int64()), ("payload", pa.string()), ("rows", pa.int32()), ("bytes", pa.int32())])

Found = Callable[..., DataFrame]
Open = Callable[[int], ChannelResults]


@pytest.fixture
def found(spark: SparkSession) -> Found:
    """What an execution found for these BE subscriptions."""

    def found(*bes: int) -> DataFrame:
        payloads = [f'[{{"n":{be}}}]' for be in bes]
        table = pa.table([bes, payloads, [1] * len(bes), [len(text) for text in payloads]], schema=_COLUMNS)
        return spark.createDataFrame(table)

    return found


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Opens the results of a channel, with so many bytes of cache."""
    return lambda cache: ChannelResults("c", tmp_path / "c", Cache(cache))


def pulled(
    results: ChannelResults, first: int, last: int, bes: Sequence[int] | None = None
) -> list[tuple[int, int, str]]:
    parts = results.pull(first, last, bes)
    return [(r.execution, r.be, bytes(r.payload).decode()) for part in parts for r in part.results]


def test_executions_are_numbered_from_1_also_those_that_found_nothing(opened: Open, found: Found) -> None:
    results = opened(1 << 20)
    numbers = [results.commit(found(*bes), {"Reports": n}, NOW)[0] for n, bes in enumerate([(1, 2), (), (2,)], 1)]
    assert (numbers, results.execution, results.seen_version("Reports")) == ([1, 2, 3], 3, 3)
    again = opened(0)
    assert (again.execution, again.seen_version("Reports"), again.seen_version("Others")) == (3, 3, 0)
    assert again.commit(found(5), {"Reports": 9}, NOW)[0] == 4
    assert [number for number, _, _ in pulled(again, 1, 9)] == [1, 1, 3, 4]


def test_a_commit_tells_whom_it_found_something_for_and_how_much(opened: Open, found: Found) -> None:
    _, rows = opened(0).commit(found(7, 12), {}, NOW)
    assert rows.to_pydict() == {"be": [7, 12], "bytes": [9, 10]}


@pytest.mark.parametrize("asked", [(1, 4), (2, 3), (0, 99), (3, 3), (5, 9), (4, 2)])
@pytest.mark.parametrize("bes", [None, [2], [1, 3, 99], []])
def test_memory_and_files_give_the_same(
    opened: Open, found: Found, asked: tuple[int, int], bes: list[int] | None
) -> None:
    cached = opened(1 << 20)
    for bes_found in ((3, 1, 2), (2,), (), (1, 2)):
        cached.commit(found(*bes_found), {}, NOW)
    stored = opened(0)
    everything = [(1, 1), (1, 2), (1, 3), (2, 2), (4, 1), (4, 2)]
    wanted = [(n, be) for n, be in everything if asked[0] <= n <= asked[1] and (bes is None or be in bes)]
    assert [(n, be) for n, be, _ in pulled(cached, *asked, bes)] == wanted
    assert pulled(cached, *asked, bes) == pulled(stored, *asked, bes)


def test_recent_executions_are_pulled_without_reading_a_file(
    opened: Open, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = opened(1 << 20)
    results.commit(found(1), {}, NOW)
    results.commit(found(), {}, NOW)
    monkeypatch.setattr(results.table, "read", None)
    assert pulled(results, 1, 2) == [(1, 1, '[{"n":1}]')]


def test_the_cache_stays_within_its_bound_and_keeps_the_newest() -> None:
    tables = [pa.table({"be": pa.array([n] * 10, pa.int64())}) for n in range(5)]
    cache = Cache(3 * tables[0].nbytes)
    for number, table in enumerate(tables):
        cache.put("c", number, table)
        cache.put("c", number, table)
    assert [cache.get("c", number) is not None for number in range(5)] == [False, False, True, True, True]
    cache.put("c", 9, pa.table({"be": pa.array(range(1000), pa.int64())}))
    assert cache.get("c", 9) is None
    cache.put("d", 1, tables[0])
    cache.drop("c")
    assert (cache.get("c", 4), cache.get("d", 1)) == (None, tables[0])


@pytest.mark.parametrize("cache", [0, 1 << 20])
def test_results_past_their_time_are_removed_and_the_others_stay_through_upkeep(
    opened: Open, found: Found, cache: int
) -> None:
    results = opened(cache)
    for minutes in range(4):
        results.commit(found(minutes), {"Reports": minutes}, NOW + timedelta(minutes=minutes))
    now = NOW + timedelta(minutes=10)
    assert results.expire(3600, now) == 0
    assert results.expire(8 * 60 + 30, now) == 2
    left = [(3, 2, '[{"n":2}]'), (4, 3, '[{"n":3}]')]
    assert pulled(results, 1, 9) == left
    results.table.compact()
    results.table.vacuum(0)
    assert pulled(results, 1, 9) == pulled(results, 3, 4) == left
    assert (results.execution, results.seen_version("Reports")) == (4, 3)
    assert results.expire(1, now) == 2
    assert (pulled(results, 1, 9), opened(0).execution) == ([], 4)
    assert results.commit(found(1), {}, now)[0] == 5


def test_skipping_counts_as_an_execution_that_found_nothing(opened: Open, found: Found) -> None:
    results = opened(1 << 20)
    results.skip({"Reports": 8})
    assert (results.execution, results.seen_version("Reports")) == (1, 8)
    assert results.commit(found(1), {"Reports": 9}, NOW)[0] == 2
    assert [number for number, _, _ in pulled(results, 1, 2)] == [2]


@pytest.mark.parametrize("cache", [0, 1 << 20], ids=["files", "memory"])
def test_a_pull_comes_in_parts_in_order_and_nothing_is_missing_between_them(
    opened: Open, found: Found, cache: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = opened(cache)
    for bes in [range(1, 8), (), range(3, 9), (1, 9)]:
        results.commit(found(*bes), {}, NOW)
    whole = pulled(results, 1, 4)
    for size in (1, 150, 250, 700):
        monkeypatch.setattr(pulls, "PART_BYTES", size)
        parts = list(results.pull(1, 4))
        assert [part.more for part in parts] == [True] * (len(parts) - 1) + [False]
        assert [(r.execution, r.be, bytes(r.payload).decode()) for part in parts for r in part.results] == whole
        assert {part.upto for part in parts} == {4}
        assert pulled(results, 1, 4, [3, 9, 100]) == [row for row in whole if row[1] in (3, 9)]


@pytest.mark.parametrize("cache", [0, 1 << 20], ids=["files", "memory"])
def test_a_pull_begins_no_execution_after_its_bound_and_says_how_far_it_got(
    opened: Open, found: Found, cache: int
) -> None:
    results = opened(cache)
    for bes in [range(1, 8), (), range(3, 9), (1, 9)]:
        results.commit(found(*bes), {}, NOW)
    assert [(len(part.results), part.upto) for part in results.pull(1, 4, None, 1)] == [(7, 1)]
    assert [(len(part.results), part.upto) for part in results.pull(2, 4, None, 1)] == [(6, 3)]
    assert [(len(part.results), part.upto) for part in results.pull(1, 4, None, 900)] == [(13, 3)]
    assert [(len(part.results), part.upto) for part in results.pull(4, 9, None, 1)] == [(2, 9)]
    assert [(len(part.results), part.upto) for part in results.pull(1, 4, [100], 1)] == [(0, 4)]


def test_whoever_comes_too_late_is_told_what_is_gone_and_nobody_else(opened: Open, found: Found) -> None:
    results = opened(1 << 20)
    for hours, bes in enumerate([(1, 2), (), (2, 3), (3, 4)]):
        results.commit(found(*bes), {}, NOW + timedelta(hours=hours))
    assert [(part.oldest, part.gone) for part in results.pull(1, 4)] == [(1, {})]
    assert results.expire(3600, NOW + timedelta(hours=3, minutes=30)) == 4
    for again in (results, opened(0)):
        assert [(part.oldest, part.gone) for part in again.pull(1, 4)] == [(4, {1: 1, 2: 3, 3: 3})]
        assert [part.gone for part in again.pull(1, 4, [1, 4])] == [{1: 1}]
        assert [part.gone for part in again.pull(2, 4)] == [{2: 3, 3: 3}]
        assert [part.gone for part in again.pull(4, 4)] == [{}]
        assert [row[:2] for row in pulled(again, 1, 4)] == [(4, 3), (4, 4)]


def test_of_subscriptions_that_are_no_more_nothing_is_remembered(opened: Open, found: Found) -> None:
    results = opened(0)
    results.commit(found(1, 2, 3), {}, NOW)
    results.commit(found(2), {}, NOW + timedelta(hours=1))
    later = NOW + timedelta(hours=5)
    assert results.expire(3600, later, lambda bes: bes[bes == 3]) == 4
    assert [(part.oldest, part.gone) for part in results.pull(1, 2)] == [(3, {2: 2, 3: 1})]


def test_many_that_have_lost_something_are_told_in_parts(
    opened: Open, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = opened(0)
    results.commit(found(*range(1, 8)), {}, NOW)
    results.commit(found(1), {}, NOW + timedelta(hours=2))
    results.expire(3600, NOW + timedelta(hours=2))
    monkeypatch.setattr(pulls, "PART_BYTES", 300)
    parts = list(results.pull(1, 2))
    assert [(len(part.gone), len(part.results), part.more) for part in parts] == [
        (3, 0, True),
        (3, 0, True),
        (1, 1, False),
    ]


def test_a_pull_goes_on_with_what_there_was_when_it_began(
    opened: Open, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = opened(0)
    results.commit(found(1, 2, 3), {}, NOW)
    monkeypatch.setattr(pulls, "PART_BYTES", 1)
    parts = results.pull(1, 1)
    first = next(parts)
    assert results.expire(3600, NOW + timedelta(hours=2)) == 3
    assert [result.be for part in [first, *parts] for result in part.results] == [1, 2, 3]
