"""The store is the truth: whatever becomes of the base files, a start finds what was attached."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.store import Store
from tocsin.data.subscriptions import Segments, SubscriptionRegistry, registry
from tocsin.data.subscriptions.base import Base
from tocsin.errors import StorageError
from tocsin.schema.definitions import Channel

Rows = Callable[[Segments], dict[int, tuple[object, ...]]]
Reopen = Callable[[], SubscriptionRegistry]


def events(*names: object) -> Sequence[Mapping[str, object]]:
    return [{"event": str(name)} for name in names]


def files(directory: Path) -> list[str]:
    return sorted(file.name for file in (directory / "subscriptions").iterdir())


@pytest.fixture
def filled(channel: Channel, live: SubscriptionRegistry) -> SubscriptionRegistry:
    """Thirty subscriptions of which ten are in the base and live, ten were added since, and ten are gone."""
    bes = live.attach(channel, "a", events(*range(20)))
    live.rebase("OfType")
    live.detach("a", [*bes[:9], *live.attach(channel, "b", events("x")), bes[19]])
    live.attach(channel, "b", events(*range(15, 30)))
    return live


def test_a_start_reads_the_base_and_finds_what_changed_since(
    filled: SubscriptionRegistry, reopen: Reopen, rows: Rows
) -> None:
    expected = filled.segments("OfType")
    found = reopen().segments("OfType")
    assert rows(found) == rows(expected)
    assert found.base == expected.base
    assert sorted(found.added.to_pylist(), key=str) == sorted(expected.added.to_pylist(), key=str)
    assert found.removed == expected.removed


def test_a_start_finds_who_holds_what_and_goes_on_with_new_ids(
    filled: SubscriptionRegistry, channel: Channel, reopen: Reopen, rows: Rows
) -> None:
    again = reopen()
    for broker in "abc":
        assert again.of(broker).tolist() == filled.of(broker).tolist()
    highest = max(rows(again.segments("OfType")))
    assert again.attach(channel, "a", events("new"))[0] > highest
    assert ("new",) in rows(again.segments("OfType")).values()


def test_a_base_that_is_missing_is_made_anew(
    filled: SubscriptionRegistry, reopen: Reopen, rows: Rows, tmp_path: Path
) -> None:
    expected = rows(filled.segments("OfType"))
    shutil.rmtree(tmp_path / "subscriptions")
    assert rows(reopen().segments("OfType")) == expected


@pytest.mark.parametrize("damage", ["emptied", "cut", "flipped", "rubbish"])
def test_a_damaged_base_is_not_trusted(
    filled: SubscriptionRegistry, reopen: Reopen, rows: Rows, tmp_path: Path, damage: str
) -> None:
    expected = rows(filled.segments("OfType"))
    (file,) = (tmp_path / "subscriptions").iterdir()
    content = file.read_bytes()
    column = pq.read_metadata(file).row_group(0).column(1)
    middle = column.data_page_offset + column.total_compressed_size // 2
    flipped = content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]
    file.write_bytes({"emptied": b"", "cut": content[:middle], "flipped": flipped, "rubbish": b"x" * 99}[damage])
    assert rows(reopen().segments("OfType")) == expected
    assert file.name not in files(tmp_path)


def test_a_base_of_another_store_is_not_trusted(
    store: Store, filled: SubscriptionRegistry, channel: Channel, reopen: Reopen, rows: Rows, tmp_path: Path
) -> None:
    filled.rebase("OfType")
    store.close()
    for file in tmp_path.glob("state.sqlite*"):
        file.unlink()
    with Store(tmp_path) as other:
        other.definitions.put(channel)
        other.brokers.register("a", "http://a")
        bes = other.subscriptions.attach(channel, "a", ['["one"]', '["two"]'])
    assert rows(reopen().segments("OfType")) == {bes[0]: ("one",), bes[1]: ("two",)}


def test_a_base_that_lacks_what_it_should_have_is_not_trusted(
    store: Store, filled: SubscriptionRegistry, reopen: Reopen, rows: Rows, tmp_path: Path
) -> None:
    filled.rebase("OfType")
    expected = rows(filled.segments("OfType"))
    path = tmp_path / "subscriptions" / "oftype-9.parquet"
    kept = pq.read_table(filled.segments("OfType").base)
    Base.write(DirectoryFolder(path.parent), path.name, kept.slice(1), store.identity)
    assert rows(reopen().segments("OfType")) == expected
    assert not path.exists()


def test_of_several_bases_the_newest_counts_and_the_rest_is_swept(
    filled: SubscriptionRegistry, reopen: Reopen, rows: Rows, tmp_path: Path
) -> None:
    held = filled.segments("OfType")
    filled.rebase("OfType")
    (tmp_path / "subscriptions" / "oftype-7.draft").write_bytes(b"half")
    (tmp_path / "subscriptions" / "gone-3.parquet").write_bytes(b"of a channel dropped")
    assert held.base is not None
    found = reopen().segments("OfType")
    assert rows(found) == rows(filled.segments("OfType"))
    assert found.base is not None
    assert files(tmp_path) == [Path(found.base).name]


@pytest.mark.slow
def test_a_base_stays_for_as_long_as_a_snapshot_needs_it(
    channel: Channel, live: SubscriptionRegistry, rows: Rows, tmp_path: Path
) -> None:
    live.attach(channel, "a", events(0))
    live.rebase("OfType")
    held = live.segments("OfType")
    expected = rows(held)
    for number in range(1, 6):
        live.attach(channel, "a", events(number))
        assert live.rebase("OfType")
    assert rows(held) == expected
    assert len(files(tmp_path)) == 2
    del held
    gc.collect()
    assert len(files(tmp_path)) == 1
    live.drop("OfType")
    gc.collect()
    assert files(tmp_path) == []


def test_what_changes_while_a_base_is_written_stays_a_change(
    channel: Channel, live: SubscriptionRegistry, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    bes = live.attach(channel, "a", events(*range(10)))
    live.rebase("OfType")
    bes += live.attach(channel, "a", events(*range(10, 20)))
    live.detach("a", bes[:2])
    real = registry._rows

    def meanwhile(segments: Segments) -> object:
        live.detach("a", [bes[2], bes[10]])
        (short,) = live.attach(channel, "a", events("short"))
        live.detach("a", [short])
        live.attach(channel, "a", events("long"))
        return real(segments)

    monkeypatch.setattr(registry, "_rows", meanwhile)
    assert live.rebase("OfType")
    segments = live.segments("OfType")
    assert segments.base_rows == 18
    assert segments.removed.to_pylist() == [bes[2], bes[10]]
    assert segments.added.column("__p0").to_pylist() == ["long"]
    assert len(rows(segments)) == 17


def test_a_channel_dropped_while_its_base_is_written_leaves_no_file(
    channel: Channel, live: SubscriptionRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.attach(channel, "a", events(1))
    real = registry._rows

    def meanwhile(segments: Segments) -> object:
        live.drop("OfType")
        return real(segments)

    monkeypatch.setattr(registry, "_rows", meanwhile)
    live.rebase("OfType")
    gc.collect()
    assert files(tmp_path) == []
    assert live.segments("OfType").rows == 0


def test_a_base_is_due_at_a_tenth_and_made_by_itself_at_a_fifth(channel: Channel, live: SubscriptionRegistry) -> None:
    live.attach(channel, "a", events(*range(20_000)))
    assert live.due() == []
    live.attach(channel, "a", events(*range(20_000, 22_000)))
    assert live.due() == []
    live.attach(channel, "a", events("over"))
    assert live.due() == ["OfType"]
    assert live.segments("OfType").base_rows == 20_000
    assert live.rebase("OfType")
    assert live.due() == []
    assert not live.rebase("OfType")
    live.detach("a", live.of("a")[:4_401])
    assert (live.segments("OfType").base_rows, live.segments("OfType").changes) == (17_600, 0)


def test_what_came_and_went_again_is_no_reason_for_a_base(channel: Channel, live: SubscriptionRegistry) -> None:
    for number in range(5):
        bes = live.attach(channel, "a", events(*(f"{number}-{n}" for n in range(900))))
        live.detach("a", bes)
    assert live.due() == []
    assert live.segments("OfType").base is None


def test_without_subscriptions_there_is_no_base(channel: Channel, live: SubscriptionRegistry, rows: Rows) -> None:
    live.attach(channel, "a", events(1))
    live.rebase("OfType")
    live.leave("a")
    assert live.rebase("OfType")
    assert live.segments("OfType").base is None
    live.attach(channel, "a", events(2))
    assert list(rows(live.segments("OfType")).values()) == [("2",)]


def test_a_base_that_cannot_be_written_is_told_to_who_asked_and_keeps_nobody_from_subscribing(
    channel: Channel, live: SubscriptionRegistry, rows: Rows, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "subscriptions")
    live.attach(channel, "a", events(*range(3_000)))
    with pytest.raises(StorageError, match=r"oftype-\d+\.parquet cannot be written"):
        live.rebase("OfType")
    assert len(rows(live.segments("OfType"))) == 3_000
    (tmp_path / "subscriptions").mkdir()
    live.attach(channel, "a", events("one more"))
    assert live.segments("OfType").base_rows == 3_001


def test_what_one_that_was_superseded_still_writes_or_removes_is_not_what_the_next_one_reads(
    channel: Channel, live: SubscriptionRegistry, store: Store, rows: Rows, tmp_path: Path
) -> None:
    live.attach(channel, "a", events(*range(20)))
    live.rebase("OfType")
    base = live.segments("OfType").base
    assert base is not None
    (tmp_path / "copy").hardlink_to(base)
    store.claim()
    later = SubscriptionRegistry(store, tmp_path / "subscriptions")
    expected = rows(later.segments("OfType"))
    # It may have been held up just before it would write.
    (tmp_path / "copy").rename(base)
    live.attach(channel, "a", events("late"))
    live.rebase("OfType")
    gc.collect()
    assert not Path(base).exists()
    assert rows(later.segments("OfType")) == expected
