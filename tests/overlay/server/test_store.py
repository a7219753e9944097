from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tocsin.errors import ConflictError, SettingsError, StorageError
from tocsin.model.histories import Era
from tocsin.overlay.messages import Routed
from tocsin.overlay.server.store import FILE, ReplayStore


def routed(offset: int, publisher: str = "p") -> Routed:
    return Routed("h", offset, publisher, 10 * offset, {"symbol": "YHOO", "high": 40.5, "halted": False})


def test_a_new_log_is_empty(tmp_path: Path) -> None:
    with closing(ReplayStore(tmp_path / "new", "h", 3)) as store:
        kept = store.read()
    assert (kept.publications, kept.last, kept.sequences) == ([], 0, {})


def test_what_was_appended_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    with closing(ReplayStore(tmp_path, "h", 10)) as store:
        store.append([routed(1), routed(2, "q")])
        store.append([routed(3)])
    with closing(ReplayStore(tmp_path, "h", 10)) as store:
        kept = store.read()
    assert kept.publications == [routed(1), routed(2, "q"), routed(3)]
    assert (kept.last, kept.sequences) == (3, {"p": 30, "q": 20})


def test_a_log_has_a_history_of_who_began_it_and_where(tmp_path: Path) -> None:
    with closing(ReplayStore(tmp_path, "h", 10)) as store:
        assert store.begin("one").history == [Era("one", 0)]
        store.append([routed(1), routed(2)])
    with closing(ReplayStore(tmp_path, "h", 10)) as store:
        assert store.begin("two").history == store.read().history == [Era("one", 0), Era("two", 2)]


def test_only_the_latest_are_kept_and_every_publishers_number(tmp_path: Path) -> None:
    with closing(ReplayStore(tmp_path, "h", 2)) as store:
        store.append([routed(1, "q")])
        store.append([routed(2), routed(3), routed(4)])
        kept = store.read()
    assert [each.offset for each in kept.publications] == [3, 4]
    assert kept.sequences == {"q": 10, "p": 40}


def test_of_a_batch_that_is_refused_nothing_is_kept(tmp_path: Path) -> None:
    with closing(ReplayStore(tmp_path, "h", 10)) as store:
        store.append([routed(1)])
        with pytest.raises(StorageError):
            store.append([routed(2), routed(1)])
        assert [each.offset for each in store.read().publications] == [1]


def test_a_log_has_one_head_and_one_writer(tmp_path: Path) -> None:
    with closing(ReplayStore(tmp_path, "h", 10)), pytest.raises(ConflictError, match="is being written by process"):
        ReplayStore(tmp_path, "h", 10)
    with pytest.raises(SettingsError, match=r"is that of the head h, and overlay\.name = other"):
        ReplayStore(tmp_path, "other", 10)


def test_a_file_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database, but as long as one would begin" * 50)
    with pytest.raises(StorageError, match="cannot be used"):
        ReplayStore(tmp_path, "h", 10)


def test_a_directory_that_cannot_be_made_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=r"file/below cannot be used .*--set overlay\.directory=PATH"):
        ReplayStore(tmp_path / "file" / "below", "h", 10)


def test_no_more_bytes_are_kept_than_may_be_but_for_the_latest(tmp_path: Path) -> None:
    size = len(msgspec.json.encode(routed(1)))
    with closing(ReplayStore(tmp_path, "h", 10, 3 * size)) as store:
        for first in (1, 3, 5):
            store.append([routed(first), routed(first + 1)])
        assert [each.offset for each in store.read().publications] == [4, 5, 6]
    with closing(ReplayStore(tmp_path, "h", 10, size)) as store:
        assert store.read().publications == [routed(6)]
        store.append([routed(7, "a publisher with a long name")])
        assert [each.offset for each in store.read().publications] == [7]
        store.append([routed(8)])
        kept = store.read()
    assert (kept.publications, kept.last) == ([routed(8)], 8)


def test_publishers_are_forgotten_with_what_is_stored_next_and_the_last_number_of_any_is_kept(tmp_path: Path) -> None:
    with closing(ReplayStore(tmp_path, "h", 10)) as store:
        store.append([routed(1, "old"), routed(2)])
        store.append([routed(3, "old again")], ["old"], 10)
        assert (store.read().sequences, store.read().floor) == ({"p": 20, "old again": 30}, 10)
        # One that is forgotten and comes back at once is known.
        store.append([routed(4)], ["p"], 20)
        store.append([], ["old again"], 30)
    with closing(ReplayStore(tmp_path, "h", 10)) as store:
        kept = store.read()
    assert (kept.sequences, kept.floor, kept.last) == ({"p": 40}, 30, 4)


def test_time_goes_on_from_where_a_publisher_was_seen_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [5000.0]
    monkeypatch.setattr("tocsin.overlay.server.store.time.monotonic", lambda: clock[0])
    with closing(ReplayStore(tmp_path, "h", 10)) as store:
        store.append([routed(1, "early")])
        clock[0] += 100.0
        store.append([routed(2, "late")])
        assert store.read().seen == {"early": 0.0, "late": 100.0}
    clock[0] = 7.0
    with closing(ReplayStore(tmp_path, "h", 10)) as store:
        clock[0] += 50.0
        store.append([routed(3, "early")])
        kept = store.read()
    assert (kept.seen, kept.age) == ({"early": 150.0, "late": 100.0}, 150.0)


def test_a_log_of_an_older_version_is_taken_over(tmp_path: Path) -> None:
    with closing(ReplayStore(tmp_path, "h", 10)) as store:
        store.begin("one")
        store.append([routed(1)])
    with closing(sqlite3.connect(tmp_path / FILE)) as file:
        file.execute("ALTER TABLE publishers DROP COLUMN seen")
        file.execute("ALTER TABLE head DROP COLUMN floor")
        file.execute("PRAGMA user_version = 2")
    with closing(ReplayStore(tmp_path, "h", 10)) as store:
        kept = store.read()
        assert (kept.sequences, kept.seen, kept.floor, kept.history) == ({"p": 10}, {"p": 0.0}, 0, [Era("one", 0)])
        store.append([routed(2, "q")], ["p"], 10)
        assert (store.read().sequences, store.read().floor) == ({"q": 20}, 10)
