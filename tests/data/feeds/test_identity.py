"""Which ids were seen: as a Python set would say, whatever was spilled, merged, lost or put back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.feeds import identity, runs
from tocsin.data.feeds.identity import SeenIds
from tocsin.data.feeds.runs import IdRun, write_run
from tocsin.data.feeds.teaching import teach
from tocsin.data.lake.table import Table

SCHEMA = pa.schema([("id", pa.string())])
REOPEN = "reopen"

Batch = list[int]


def ids(numbers: Sequence[int]) -> list[str]:
    return [f"id-{number}" for number in numbers]


def expected(batch: Sequence[str], known: set[str]) -> list[bool]:
    return [name not in known and name not in batch[:place] for place, name in enumerate(batch)]


@given(
    st.lists(st.one_of(st.lists(st.integers(0, 60), max_size=25), st.just(REOPEN)), max_size=25),
    st.integers(1, 40),
)
def test_an_id_is_new_exactly_when_no_set_would_have_it(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Batch | str], spill: int
) -> None:
    directory = tmp_path_factory.mktemp("ids")
    known: list[list[str]] = []
    seen = SeenIds(directory, spill)
    for step in steps:
        if isinstance(step, str):
            seen = SeenIds(directory, spill)
            # What was not spilled is taught again, version by version.
            for version in range(seen.version, len(known)):
                seen.add(known[version], version + 1)
            continue
        batch = ids(step)
        before = {name for names in known for name in names}
        new = seen.unseen(batch).tolist()
        assert new == expected(batch, before)
        known.append([name for name, is_new in zip(batch, new, strict=True) if is_new])
        seen.add(known[-1], len(known))
        assert len(seen) == sum(map(len, known))
        assert seen.version == len(known)


def test_looking_does_not_make_an_id_seen(tmp_path: Path) -> None:
    seen = SeenIds(tmp_path)
    assert seen.unseen(["a", "b", "a"]).tolist() == [True, True, False]
    assert seen.unseen(["a"]).tolist() == [True]


def test_ids_of_any_type_are_told_apart(tmp_path: Path) -> None:
    seen = SeenIds(tmp_path)
    seen.add([1, 2.5, "x", True], 1)
    assert seen.unseen([1, 2, 2.5, 2.6, "x", "y", True, False]).tolist() == [False, True] * 4


def test_runs_are_few_and_sorted_however_many_ids_there_are(tmp_path: Path) -> None:
    seen = SeenIds(tmp_path, spill=10)
    for version in range(1, 501):
        seen.add(ids(range(version * 10, version * 10 + 10)), version)
    found = [IdRun(path) for path in sorted(tmp_path.glob("*.run"), key=lambda path: runs.versions(path))]
    assert len(found) <= 6
    assert [run.first for run in found] == [1, *(run.last + 1 for run in found[:-1])]
    assert sum(len(run) for run in found) == 5000
    for run in found:
        pairs = list(zip(*run.hashes.tolist(), strict=True))
        assert pairs == sorted(pairs)


def test_runs_are_merged_in_pieces_that_bound_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_PIECE", 7)
    parts = [identity.hash_ids(range(start, start + count)) for start, count in ((0, 100), (100, 3), (200, 40))]
    ordered = [part[:, np.lexsort(part[::-1])] for part in parts]
    run = write_run(tmp_path, 1, 2, ordered)
    together = np.concatenate(parts, axis=1)
    assert run.hashes.tolist() == together[:, np.lexsort(together[::-1])].tolist()


def test_hashes_that_begin_alike_are_told_apart(tmp_path: Path) -> None:
    heads, tails = [5, 5, 5, 9], [1, 4, 7, 2]
    run = write_run(tmp_path, 1, 1, [np.array([heads, tails], np.uint64)])
    asked = np.array([[5, 5, 5, 5, 9, 9, 10], [4, 7, 1, 8, 2, 1, 1]], np.uint64)
    assert run.contains(asked).tolist() == [True, True, True, False, True, False, False]


class Crash(BaseException):
    """The process dies."""


@pytest.mark.parametrize("call", ["pwrite", "fsync", "replace", "unlink"])
def test_a_crash_at_any_step_of_a_spill_loses_and_invents_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise Crash

    seen = SeenIds(tmp_path, spill=4)
    seen.add(ids(range(4)), 1)
    owner = os if hasattr(os, call) and call in {"pwrite", "fsync"} else Path
    monkeypatch.setattr(owner, call, crash)
    with pytest.raises(Crash):
        seen.add(ids(range(4, 8)), 2)
    monkeypatch.undo()
    again = SeenIds(tmp_path, spill=4)
    assert again.version == (2 if call == "unlink" else 1)
    assert len(again) == 4 * again.version
    assert again.unseen(ids(range(9))).tolist() == [False] * len(again) + [True] * (9 - len(again))
    assert list(tmp_path.glob("*.part")) == []
    assert len(list(tmp_path.glob("*.run"))) == 1


def test_a_full_disk_keeps_the_ids_in_memory_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    seen = SeenIds(tmp_path, spill=4)
    seen.add(ids(range(4)), 1)
    monkeypatch.setattr(os, "pwrite", full)
    seen.add(ids(range(4, 8)), 2)
    assert not seen.unseen(ids(range(8))).any()
    monkeypatch.undo()
    seen.add(ids([8]), 3)
    assert not seen.unseen(ids(range(9))).any()
    assert SeenIds(tmp_path).version == 3


def test_a_damaged_or_foreign_run_is_not_used(tmp_path: Path) -> None:
    seen = SeenIds(tmp_path, spill=1)
    seen.add(ids(range(100)), 1)
    seen.add(ids([100]), 2)
    (tmp_path / "1-1.run").write_bytes(b"cut short")
    (tmp_path / "notes.run").write_bytes(b"")
    assert (SeenIds(tmp_path).version, list(tmp_path.iterdir())) == (0, [])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "table", SCHEMA)


def stored(table: Table, numbers: Sequence[int]) -> None:
    table.append(pa.table({"id": ids(numbers)}, schema=SCHEMA), {})


def test_what_the_dataset_has_and_the_index_has_not_is_taught(tmp_path: Path, table: Table) -> None:
    seen = SeenIds(tmp_path / "ids", spill=5)
    stored(table, range(6))
    teach(seen, table, "id")
    stored(table, range(6, 9))
    table.mark({})
    again = SeenIds(tmp_path / "ids", spill=5)
    assert (again.version, len(again)) == (1, 6)
    teach(again, table, "id")
    assert (again.version, len(again)) == (3, 9)
    assert not again.unseen(ids(range(9))).any()


def test_a_lost_index_is_made_anew_from_a_compacted_dataset_a_little_at_a_time(
    tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in range(20):
        stored(table, range(version * 3, version * 3 + 3))
    table.compact()
    seen = SeenIds(tmp_path / "ids", spill=6)
    added: list[int] = []
    real = SeenIds.add

    def watched(self: SeenIds, names: Sequence[object], version: int) -> None:
        added.append(len(names))
        real(self, names, version)

    monkeypatch.setattr(SeenIds, "add", watched)
    teach(seen, table, "id")
    assert max(added) <= 6
    assert (seen.version, len(seen)) == (20, 60)
    assert SeenIds(tmp_path / "ids").version == 20


def test_an_index_ahead_of_a_dataset_that_was_put_back_is_made_anew(
    tmp_path: Path, table: Table, content: Callable[[Table], list[str]]
) -> None:
    stored(table, range(3))
    backup = shutil.copytree(table.path, tmp_path / "backup")
    seen = SeenIds(tmp_path / "ids", spill=1)
    stored(table, range(3, 6))
    teach(seen, table, "id")
    restored = Table(backup, SCHEMA)
    again = SeenIds(tmp_path / "ids", spill=1)
    assert again.version == 2 > restored.version
    teach(again, restored, "id")
    assert again.version == restored.version == 1
    assert again.unseen(ids(range(6))).tolist() == [False] * 3 + [True] * 3
    assert content(restored) == ids(range(3))


@pytest.fixture
def content() -> Callable[[Table], list[str]]:
    return lambda table: sorted(table.read(columns=["id"])["id"].to_pylist())
