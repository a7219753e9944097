"""The newest rows in memory: whole, without a gap, and bounded."""

from __future__ import annotations

import pyarrow as pa

from tocsin.data.lake.recent import Recent


def rows(*keys: str) -> pa.Table:
    return pa.table({"key": pa.array(keys, pa.string())})


def keys(found: pa.Table | None) -> list[str] | None:
    return None if found is None else found["key"].to_pylist()


def test_what_came_between_two_versions_is_given_whole() -> None:
    recent = Recent(10_000)
    for version, part in enumerate((rows("a"), rows(), rows("b", "c")), start=4):
        recent.add(version, part)
    assert keys(recent.between(3, 6)) == ["a", "b", "c"]
    assert keys(recent.between(4, 6)) == ["b", "c"]
    assert keys(recent.between(4, 5)) == []


def test_what_is_no_longer_all_there_is_not_given_in_part() -> None:
    recent = Recent(2 * rows("x" * 100).nbytes)
    for version in (1, 2, 3):
        recent.add(version, rows(str(version) * 100))
    assert recent.between(0, 3) is None
    assert keys(recent.between(1, 3)) == ["2" * 100, "3" * 100]
    assert recent.between(2, 4) is None


def test_nothing_is_known_across_a_commit_that_was_not_an_append() -> None:
    recent = Recent(10_000)
    recent.add(1, rows("a"))
    recent.add(3, rows("c"))
    assert recent.between(0, 3) is None
    assert keys(recent.between(2, 3)) == ["c"]
    recent.forget()
    assert recent.between(2, 3) is None


def test_more_than_fits_is_not_kept() -> None:
    recent = Recent(10)
    recent.add(1, rows("x" * 100))
    assert recent.between(0, 1) is None
    recent.add(2, rows())
    assert keys(recent.between(1, 2)) == []
