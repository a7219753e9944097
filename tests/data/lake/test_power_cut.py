"""What a table has committed outlives a power cut: the disk was asked in time, and a torn end is no obstacle."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.data.lake.offering import offered
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.entries import checkpoints
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.table import Table
from tocsin.errors import StorageError

Rows = Callable[..., pa.Table]
Content = Callable[[Table], dict[str, int]]
Reopen = Callable[[], Table]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return DirectoryFolder(tmp_path / "table")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Which file was synced or put in place, in order."""
    noted: list[tuple[str, str]] = []
    fsync, replace, link = os.fsync, Path.replace, Path.hardlink_to

    def noting_sync(descriptor: int) -> None:
        fsync(descriptor)
        name = Path(os.readlink(f"/proc/self/fd/{descriptor}")).name
        noted.append(("sync", "_draft" if name.startswith("_draft-") else name))

    def noting_replace(draft: Path, target: Path) -> Path:
        noted.append(("place", target.name))
        return replace(draft, target)

    def noting_link(entry: Path, draft: Path) -> None:
        noted.append(("place", entry.name))
        link(entry, draft)

    monkeypatch.setattr(os, "fsync", noting_sync)
    monkeypatch.setattr(Path, "hardlink_to", noting_link)
    monkeypatch.setattr(Path, "replace", noting_replace)
    return noted


CHANGES: dict[str, Callable[[Table, Rows], object]] = {
    "an append": lambda table, rows: table.append(rows(c=3), {}),
    "a merge": lambda table, rows: table.merge(rows(a=9), "key", {}),
    "a compaction": lambda table, rows: table.compact(),
    "a deletion": lambda table, rows: table.delete(pc.field("value") == 1),
    "an overwriting": lambda table, rows: table.overwrite(rows(z=0), {}),
    "files of nodes": lambda table, rows: table.adopt_unstamped(
        [offered(table, rows(c=3)), offered(table, rows(d=4))], {}
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_data_come_before_the_entry_that_names_them_and_the_entry_before_the_commit_counts(
    table: Table, rows: Rows, steps: list[tuple[str, str]], change: Callable[[Table, Rows], object]
) -> None:
    table.append(rows(a=1), {})
    table.append(rows(b=2), {})
    before = set(table.snapshot.paths())
    steps.clear()
    change(table, rows)
    new = {("sync", Path(path).name) for path in set(table.snapshot.paths()) - before}
    # A file is put there, and removed again, to read the store's clock off it.
    steps[:] = [(what, name) for what, name in steps if not (what == "place" and name.startswith("_draft-"))]
    placed = steps.index(("place", "00000000000000000003.json"))
    assert {*new, ("sync", "_draft"), *([("sync", "table")] if new else [])} == set(steps[:placed])
    assert steps[placed + 1 :] == [("sync", "_delta_log")]


def test_a_commit_that_the_disk_does_not_keep_does_not_count(
    table: Table, rows: Rows, content: Content, reopen: Reopen, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows(a=1), {"slice-0": 1})
    fsync = os.fsync

    def refusing(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("_delta_log"):
            raise OSError(5, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refusing)
    with pytest.raises(StorageError, match="Input/output error"):
        table.append(rows(b=2), {"slice-0": 2})
    assert (table.version, table.marker("slice-0"), content(table)) == (1, 1, {"a": 1})
    monkeypatch.undo()
    assert content(reopen()) == {"a": 1}
    table.append(rows(b=2), {"slice-0": 2})
    assert content(reopen()) == {"a": 1, "b": 2}


@pytest.mark.slow
def test_what_a_checkpoint_replaces_is_removed_after_the_disk_has_it(
    table: Table, rows: Rows, reopen: Reopen, content: Content, steps: list[tuple[str, str]]
) -> None:
    log = table.path / "_delta_log"
    for number in range(1, 301):
        table.mark({"slice-0": number})
        steps.clear()
        if table.checkpoint(100):
            name = f"{number:020d}.checkpoint.parquet"
            assert steps == [
                ("sync", "_draft"),
                ("place", name),
                ("sync", "_delta_log"),
                ("sync", "_draft"),
                ("place", "_last_checkpoint"),
                ("sync", "_delta_log"),
            ]
    # The checkpoint before the newest stays, with all that came after it.
    assert {int(file.name[:20]) for file in log.glob("0*")} == set(range(200, 301))
    table.append(rows(a=1), {})
    again = reopen()
    assert (again.version, again.marker("slice-0"), content(again), again.damage) == (301, 300, {"a": 1}, "")


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_read_is_not_needed(
    table: Table, rows: Rows, reopen: Reopen, content: Content
) -> None:
    table.append(rows(a=1), {"slice-0": 1})
    for number in range(2, 301):
        table.mark({"slice-0": number})
        table.checkpoint(100)
    log = table.path / "_delta_log"
    newest = log / max(checkpoints(path.name for path in log.iterdir()).values())
    newest.write_bytes(newest.read_bytes()[:100])
    again = reopen()
    assert (again.version, again.marker("slice-0"), content(again)) == (300, 300, {"a": 1})
    assert newest.name in " ".join(path.name for path in (table.path / "_quarantine").iterdir())


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def a_line_short(file: Path) -> None:
    file.write_bytes(b"\n".join(file.read_bytes().splitlines()[:-1]))


def zeroes(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "torn": torn,
    "a line short": a_line_short,
    "zeroes": zeroes,
    "missing": Path.unlink,
}


@pytest.mark.parametrize("damage", [DAMAGE[name] for name in DAMAGE if name != "missing"])
def test_an_entry_at_the_end_that_is_not_whole_is_set_aside(
    table: Table, rows: Rows, reopen: Reopen, content: Content, damage: Callable[[Path], object]
) -> None:
    table.append(rows(a=1), {"slice-0": 1})
    table.append(rows(b=2), {"slice-0": 2})
    damage(table.path / "_delta_log" / "00000000000000000002.json")
    again = reopen()
    assert (again.version, again.marker("slice-0"), content(again)) == (1, 1, {"a": 1})
    assert "the end of the table" in again.damage
    assert [file.name for file in (table.path / "_quarantine").iterdir()] == ["00000000000000000002.json"]
    again.append(rows(c=3), {"slice-0": 2})
    assert content(reopen()) == {"a": 1, "c": 3}
    shutil.rmtree(table.path / "_quarantine")
    assert (again.damage, reopen().damage) == ("", "")


@pytest.mark.parametrize("name", ["empty", "torn", "missing"])
def test_a_commit_at_the_end_without_its_data_is_set_aside(
    table: Table, rows: Rows, reopen: Reopen, content: Content, name: str
) -> None:
    table.append(rows(a=1), {"slice-0": 1})
    before = set(table.snapshot.paths())
    table.append(rows(b=2), {"slice-0": 2})
    [file] = set(table.snapshot.paths()) - before
    DAMAGE[name](Path(file))
    again = reopen()
    assert (again.version, again.marker("slice-0"), content(again)) == (1, 1, {"a": 1})
    kept = {path.name for path in (table.path / "_quarantine").iterdir()}
    assert kept == {"00000000000000000002.json"} | ({Path(file).name} if name != "missing" else set())


def test_a_torn_end_that_others_wrote_goes_however_long_it_is(
    table: Table, rows: Rows, reopen: Reopen, content: Content
) -> None:
    table.append(rows(a=1), {})
    for number in range(3):
        write_deltalake(DeltaTable(str(table.path)), rows(x=number).append_column("_v", [[2 + number]]), mode="append")
    (table.path / "_delta_log" / "00000000000000000003.json").write_bytes(b"")
    again = reopen()
    assert len(again.snapshot.files) == 2
    assert sorted(again.read()["key"].to_pylist()) == ["a", "x"]
    again.append(rows(b=2), {})
    assert sorted(reopen().read()["key"].to_pylist()) == ["a", "b", "x"]


def test_damage_in_the_middle_is_no_power_cut_and_nothing_is_thrown_away_for_it(
    table: Table, rows: Rows, reopen: Reopen
) -> None:
    for number in range(4):
        table.append(rows(a=number), {})
    before = sorted(table.path.rglob("*"))
    (table.path / "_delta_log" / "00000000000000000002.json").write_bytes(b"")
    with pytest.raises(StorageError, match=r"00000000000000000002.json of its log cannot be read, but later ones can"):
        reopen()
    assert sorted(table.path.rglob("*")) == before


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_table_whose_very_beginning_was_torn_begins_again(
    table: Table, rows: Rows, reopen: Reopen, content: Content, damage: Callable[[Path], object]
) -> None:
    damage(table.path / "_delta_log" / "00000000000000000000.json")
    again = reopen()
    again.append(rows(a=1), {})
    assert content(reopen()) == {"a": 1}


@pytest.mark.parametrize("pointer", [b"", b'{"version": 100', b'{"version": 7}', bytes(40)])
def test_the_pointer_to_the_last_checkpoint_is_only_a_hint(table: Table, reopen: Reopen, pointer: bytes) -> None:
    for number in range(1, 103):
        table.mark({"slice-0": number})
        table.checkpoint(100)
    (table.path / "_delta_log" / "_last_checkpoint").write_bytes(pointer)
    again = reopen()
    assert (again.version, again.damage) == (102, "")


@pytest.mark.slow
def test_any_reader_of_delta_tables_understands_the_log(table: Table, rows: Rows) -> None:
    for number in range(1, 120):
        table.merge(rows(a=number, **{f"k{number}": number}), "key", {"slice-0": number})
    table.compact()
    table.checkpoint(100)
    table.delete(pc.field("value") < 10)
    table.vacuum(0)
    delta = DeltaTable(str(table.path))
    assert (delta.transaction_version("slice-0"), delta.transaction_version("version")) == (119, 119)
    assert delta.to_pyarrow_table().num_rows == table.read().num_rows == 111
    assert len(delta.history(5)) == 5
