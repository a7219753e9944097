"""Two writers of one table, whichever comes first at every step: one is refused, and nothing that counted is lost."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from threading import Semaphore, Thread, local
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.data.lake.conftest import SCHEMA
from tocsin.data.disk import Disk
from tocsin.data.fence import Fence
from tocsin.data.lake import commits
from tocsin.data.lake.checkpoints import read_markers
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.s3 import S3Folder
from tocsin.data.lake.table import Table
from tocsin.errors import StorageError, SupersededError

Rows = Callable[..., pa.Table]
Content = Callable[[Table], dict[str, int]]


Fenced = Callable[[int], Folder]
Opened = Callable[[int], Table]


@pytest.fixture(params=["directory", "s3"])
def fenced(request: pytest.FixtureRequest, tmp_path: Path) -> Fenced:
    """The table's folder as the data cluster of that term has it; without one, as who has none does."""

    def in_directory(term: int) -> Folder:
        return DirectoryFolder(tmp_path / "table", Disk(sync=False, fence=Fence(tmp_path, term) if term else None))

    if request.param == "directory":
        return in_directory
    place = request.getfixturevalue("s3").folder()
    return lambda term: S3Folder(place._bucket, place._prefix, Fence(tmp_path, term) if term else None)


@pytest.fixture
def opened(fenced: Fenced) -> Opened:
    """Opens the table as the data cluster of that term would."""
    return lambda term: Table(fenced(term), SCHEMA)


def test_once_a_later_one_has_opened_the_table_an_earlier_one_commits_nothing(
    opened: Opened, rows: Rows, content: Content
) -> None:
    first = opened(1)
    first.append(rows(a=1), {"slice-0": 1})
    second = opened(2)
    for change in (
        lambda: first.append(rows(b=1), {"slice-0": 2}),
        lambda: first.merge(rows(a=2), "key", {"slice-0": 2}),
        lambda: first.overwrite(rows(b=1), {"slice-0": 2}),
        lambda: first.mark({"slice-0": 2}),
        lambda: first.delete(pc.field("key") == "a"),
    ):
        with pytest.raises(SupersededError, match=r"has taken over the table .*: commit 3 is another's"):
            change()
    second.append(rows(c=1), {"slice-0": 2})
    assert content(second) == content(opened(3)) == {"a": 1, "c": 1}


def test_what_an_earlier_one_commits_while_a_later_one_opens_the_table_counts(
    opened: Opened, rows: Rows, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(1)
    late = iter([rows(a=1), rows(b=1)])
    read = read_markers

    def commits_meanwhile(log: Folder) -> dict[str, int]:
        found = read(log)
        for each in late:
            first.append(each, {"slice-0": first.marker("slice-0") + 1})
            break
        return found

    monkeypatch.setattr(commits, "read_markers", commits_meanwhile)
    second = opened(2)
    assert (content(second), second.marker("slice-0"), second.version) == ({"a": 1, "b": 1}, 2, 2)
    with pytest.raises(SupersededError):
        first.append(rows(c=1), {})


def test_an_earlier_one_cannot_even_open_the_table(opened: Opened, rows: Rows) -> None:
    opened(2).append(rows(a=1), {})
    with pytest.raises(SupersededError, match="it is written under term 2, that of this one is 1"):
        opened(1)


def test_who_has_no_term_reads_a_table_that_is_written_under_one_and_commits_nothing(
    opened: Opened, rows: Rows, content: Content
) -> None:
    opened(1).append(rows(a=1), {})
    reading = opened(0)
    assert content(reading) == {"a": 1}
    with pytest.raises(SupersededError):
        reading.append(rows(b=1), {})


def test_the_term_outlives_a_checkpoint(opened: Opened, rows: Rows, tmp_path: Path) -> None:
    table = opened(3)
    Fence(tmp_path, 3).put_up()
    for number in range(4):
        table.append(rows(a=number), {})
    for _ in range(2):
        table.append(rows(a=9), {})
        assert table.checkpoint(1)
    with pytest.raises(SupersededError):
        opened(2)


def test_one_who_wakes_up_after_its_number_has_been_cleaned_away_is_refused_still(
    opened: Opened, rows: Rows, content: Content, tmp_path: Path
) -> None:
    first = opened(1)
    first.append(rows(a=1), {})
    second = opened(2)
    Fence(tmp_path, 2).put_up()
    for number in range(6):
        second.append(rows(**{f"b{number}": 1}), {})
        second.checkpoint(1)
    assert second.folder.below("_delta_log").find("00000000000000000003.json") is None
    with pytest.raises(SupersededError, match="commit 2 is no longer the last"):
        first.append(rows(c=1), {})
    assert content(opened(3)) == {"a": 1, **{f"b{number}": 1 for number in range(6)}}


def test_a_checkpoint_by_one_that_was_superseded_is_not_made(opened: Opened, rows: Rows, tmp_path: Path) -> None:
    first = opened(1)
    first.append(rows(a=1), {})
    Fence(tmp_path, 2).put_up()
    with pytest.raises(SupersededError):
        first.checkpoint(1)
    assert not [name for name in first.folder.below("_delta_log").files() if name.endswith(".parquet")]


def test_one_that_was_superseded_by_another_with_a_directory_of_its_own_removes_nothing(
    opened: Opened, rows: Rows, content: Content, tmp_path: Path
) -> None:
    first = opened(1)
    Fence(tmp_path, 1).put_up()
    first.append(rows(a=1), {})
    first.overwrite(rows(a=2), {})
    second = opened(2)
    second.append(rows(b=1), {})
    assert (first.vacuum(0), first.checkpoint(1)) == (0, False)
    assert content(opened(3)) == {"a": 2, "b": 1}


@pytest.mark.parametrize("fenced", ["directory"], indirect=True)
def test_a_table_opens_on_a_full_disk_and_is_fenced_by_the_first_commit(
    opened: Opened, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(1)
    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", _refuse)
        second = opened(2)
        with pytest.raises(StorageError, match="the disk is full"):
            second.append(rows(a=1), {})
    second.append(rows(a=1), {})
    with pytest.raises(SupersededError):
        first.append(rows(b=1), {})


def _refuse(*_: object) -> None:
    raise OSError(28, "No space left on device")


# Reading the log, reading its markers, and naming the fence and two commits.
STEPS = 5


class Writer:
    """Opens the table and commits twice, in a thread that stands still before each step on disk."""

    def __init__(self, opened: Opened, term: int, rows: Rows) -> None:
        self.kept: list[str] = []
        self._ended = False
        self._opened, self._term, self._rows = opened, term, rows
        self._go, self._stands = Semaphore(0), Semaphore(0)
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Goes on to before the next step, or to the end."""
        if not self._ended:
            self._go.release()
            self._stands.acquire()

    def finish(self) -> None:
        """Takes all the steps that are left."""
        while not self._ended:
            self.step()
        self._thread.join()

    def pause(self) -> None:
        """Stands still until told to go on."""
        self._stands.release()
        self._go.acquire()

    def _work(self) -> None:
        _here.writer = self
        self._go.acquire()
        try:
            table = self._opened(self._term)
            for name in (f"{self._term}-first", f"{self._term}-second"):
                self._append(table, name)
        except SupersededError:
            pass
        finally:
            self._ended = True
            self._stands.release()

    def _append(self, table: Table, name: str) -> None:
        table.append(self._rows(**{name: 1}), {"slice-0": table.marker("slice-0") + 1})
        self.kept.append(name)


_here = local()


def _pausing(function: Callable[..., Any]) -> Callable[..., Any]:
    def paused(*arguments: Any) -> Any:
        if writer := getattr(_here, "writer", None):
            writer.pause()
        return function(*arguments)

    return paused


@pytest.mark.slow
def test_in_whichever_order_two_writers_take_their_steps_a_commit_counts_once_or_is_refused(
    tmp_path: Path, rows: Rows, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("open_table", "read_markers"):
        monkeypatch.setattr(commits, name, _pausing(getattr(commits, name)))
    monkeypatch.setattr(Path, "hardlink_to", _pausing(Path.hardlink_to))
    disks = [Disk(sync=False, fence=Fence(tmp_path, term)) for term in range(4)]
    for number, turns in enumerate(combinations(range(2 * STEPS), STEPS)):

        def opened(term: int, table: Path = tmp_path / f"table-{number}") -> Table:
            return Table(table, SCHEMA, disk=disks[term])

        opened(1)
        earlier, later = Writer(opened, 1, rows), Writer(opened, 2, rows)
        for turn in range(2 * STEPS):
            (earlier if turn in turns else later).step()
        earlier.finish()
        later.finish()
        found = opened(3)
        assert set(content(found)) == {*earlier.kept, *later.kept}, turns
        assert found.version == found.marker("slice-0") == len(content(found)), turns
        assert later.kept == ["2-first", "2-second"], turns
