"""From the log into the dataset with Spark: each record once, whatever is sent again, fails or is damaged."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.data.feeds.ingesting import Ingesting, numbered
from tests.data.waiting import until
from tocsin.data.feeds import ingest
from tocsin.data.feeds.identity import SeenIds
from tocsin.data.feeds.ingest import Ingestion, marker, positions
from tocsin.data.lake.table import Table
from tocsin.errors import StorageError
from tocsin.model.records import RecordDecoder

pytestmark = pytest.mark.spark

APPEND = "CREATE DATASET Reports (id STRING, value BIGINT) PRIMARY KEY id"
UNKEYED = "CREATE DATASET Reports (id STRING, value BIGINT)"
KEYED = "CREATE KEYED DATASET Reports (id STRING, value BIGINT) PRIMARY KEY id"

Make = Callable[..., Ingesting]


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as stack:

        def make(statement: str = APPEND, **options: Any) -> Ingesting:
            made = Ingesting(spark, tmp_path, statement, **options)
            stack.callback(made.close)
            return made

        yield make


def test_every_record_is_stored_once_before_and_after_a_restart(make: Make) -> None:
    feed = make()
    feed.publish(*numbered(range(50)))
    feed.start()
    feed.drain()
    feed.publish(*numbered(range(50, 60)))
    feed.drain()
    feed.reopen()
    feed.publish(*numbered(range(60, 80)))
    feed.start()
    feed.drain()
    assert feed.rows() == sorted(numbered(range(80)), key=lambda row: row["id"])
    assert positions(feed.table, feed.feed) == feed.log.ends()
    assert feed.commits >= 3


def test_a_backlog_of_many_micro_batches_is_stored_in_their_order(make: Make) -> None:
    feed = make(UNKEYED, slices=2, max_batch_bytes=2048)
    for number in range(40):
        feed.publish({"id": "x" * 200, "value": number})
    feed.start()
    feed.drain()
    stored = feed.table.read(columns=["value", "_v"]).to_pylist()
    assert [row["value"] for row in sorted(stored, key=lambda row: int(row["_v"]))] == list(range(40))
    assert feed.commits > 3


def test_a_record_sent_again_is_stored_once(make: Make) -> None:
    feed = make()
    feed.publish(*numbered(range(5)), *numbered(range(5)))
    feed.start()
    feed.drain()
    feed.publish(*numbered(range(3, 8)))
    feed.drain()
    feed.reopen()
    feed.publish(*numbered(range(10)))
    feed.start()
    feed.drain()
    assert feed.rows() == numbered(range(10))
    assert feed.table.version >= 3


def test_of_records_with_one_id_the_first_is_kept(make: Make) -> None:
    feed = make()
    feed.publish({"id": "a", "value": 1}, {"id": "a", "value": 2})
    feed.start()
    feed.drain()
    feed.publish({"id": "a", "value": 3})
    feed.drain()
    assert feed.rows() == [{"id": "a", "value": 1}]


def test_without_a_primary_key_equal_records_are_all_kept(make: Make) -> None:
    feed = make(UNKEYED)
    feed.publish({"id": "a", "value": 1}, {"id": "a", "value": 1})
    feed.start()
    feed.drain()
    assert feed.rows() == [{"id": "a", "value": 1}] * 2


def test_a_keyed_dataset_has_the_newest_record_in_the_order_of_arrival(make: Make) -> None:
    feed = make(KEYED)
    feed.publish(*({"id": name, "value": value} for value in range(20) for name in "abc"))
    feed.start()
    feed.drain()
    assert feed.rows() == [{"id": name, "value": 19} for name in "abc"]
    feed.publish({"id": "b", "value": 7}, {"id": "d", "value": 1}, {"id": "b", "value": 5})
    feed.drain()
    assert feed.rows() == [{"id": name, "value": value} for name, value in zip("abcd", (19, 5, 19, 1), strict=True)]


def test_a_batch_below_the_markers_is_dropped(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = make(UNKEYED)
    feed.publish(*numbered(range(10)))
    feed.start()
    feed.drain()
    version = feed.table.version
    feed.reopen()
    real = Ingestion._stream

    def from_the_start(self: Ingestion) -> DataFrame:
        with monkeypatch.context() as patch:
            patch.setattr(ingest, "positions", lambda table, feed: [0] * feed.slices)
            return real(self)

    monkeypatch.setattr(Ingestion, "_stream", from_the_start)
    feed.commits = 0
    feed.start()
    until(lambda: feed.commits)
    assert (feed.rows(), feed.table.version) == (numbered(range(10)), version)


def test_every_type_arrives_as_it_was_accepted(make: Make) -> None:
    feed = make(
        "CREATE DATASET Reports (id STRING, flag BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20,4), "
        "day DATE, at TIMESTAMP, tags ARRAY<STRING>, place STRUCT<x: DOUBLE, y: DOUBLE>) PRIMARY KEY id"
    )
    body = (
        '{"id": "Ä\\u0000\\n", "flag": true, "i": -2147483648, "l": 9223372036854775807, "f": 0.1, "d": 1e300, '
        '"n": "12345678901234.5", "day": "2026-02-28", "at": "2026-02-28T23:59:59.123456+02:00", '
        '"tags": ["a", null], "place": {"x": 1, "y": null}}\n{"id": "empty"}'
    )
    decoded = RecordDecoder(feed.dataset, "id").decode(body.encode(), "application/x-ndjson")
    assert decoded.refusals == []
    feed.log.append({0: decoded.lines})
    feed.start()
    feed.drain()
    assert feed.letters() == []
    empty, full = sorted(feed.rows(), key=lambda row: row["flag"] or False)
    assert set(empty.values()) == {"empty", None}
    assert full == {
        "id": "Ä\0\n",
        "flag": True,
        "i": -(2**31),
        "l": 2**63 - 1,
        "f": pytest.approx(0.1),
        "d": 1e300,
        "n": Decimal("12345678901234.5000"),
        "day": date(2026, 2, 28),
        "at": datetime(2026, 2, 28, 21, 59, 59, 123456, UTC),
        "tags": ["a", None],
        "place": {"x": 1.0, "y": None},
    }


def test_a_line_that_does_not_fit_is_a_dead_letter_and_the_rest_goes_on(make: Make) -> None:
    feed = make(slices=1)
    feed.log.append({0: [b'{"id": "a", "value": 1}', b'{"id": "b", "value": "many"}', b"not JSON"]})
    feed.log.append({0: [b'{"id": "c", "value": 2}']})
    feed.start()
    feed.drain()
    assert feed.rows() == [{"id": "a", "value": 1}, {"id": "c", "value": 2}]
    assert [letter["line"] for letter in feed.letters()] == ['{"id": "b", "value": "many"}', "not JSON"]
    assert {letter["reason"] for letter in feed.letters()} == {"does not fit the columns of Reports"}


def test_dead_letters_are_kept_once_when_the_batch_is_tried_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = make(slices=1)
    feed.log.append({0: [b'{"id": "a", "value": 1}', b"bad"]})
    refusing(monkeypatch, feed, "append", 3)
    ingestion = feed.start()
    until(lambda: "the disk is full" in ingestion.problem)
    feed.drain()
    # The dataset was behind the dead letters when the process ended.
    assert [letter["line"] for letter in feed.letters()] == ["bad"]
    feed.reopen()
    feed.log.append({0: [b"worse"]})
    feed.start()
    feed.drain()
    assert [letter["line"] for letter in feed.letters()] == ["bad", "worse"]
    assert feed.rows() == [{"id": "a", "value": 1}]


def refusing(monkeypatch: pytest.MonkeyPatch, feed: Ingesting, name: str, times: int) -> None:
    """Makes commits to the dataset fail so many times."""
    real, uses = getattr(feed.table, name), iter(range(times))

    def refused(*arguments: Any) -> Any:
        if next(uses, None) is not None:
            raise StorageError("the disk is full")
        return real(*arguments)

    monkeypatch.setattr(feed.table, name, refused)


@pytest.mark.parametrize(("statement", "name"), [(APPEND, "append"), (KEYED, "merge")])
def test_a_refusal_of_the_disk_is_told_tried_again_and_forgotten(
    make: Make, monkeypatch: pytest.MonkeyPatch, statement: str, name: str
) -> None:
    feed = make(statement)
    feed.publish(*numbered(range(5)))
    refusing(monkeypatch, feed, name, 5)
    ingestion = feed.start()
    assert "feed reports: the disk is full" in until(lambda: ingestion.problem)
    feed.drain()
    assert until(lambda: ingestion.problem == "")
    assert feed.rows() == numbered(range(5))


def test_a_commit_that_came_about_although_it_failed_is_not_made_twice(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = make()
    real, failed = feed.table.append, threading.Event()

    def committed_then_failed(*arguments: Any) -> Any:
        snapshot = real(*arguments)
        if not failed.is_set():
            failed.set()
            raise StorageError("too late")
        return snapshot

    monkeypatch.setattr(feed.table, "append", committed_then_failed)
    feed.publish(*numbered(range(5)))
    feed.start()
    feed.drain()
    feed.publish(*numbered(range(8)))
    feed.drain()
    assert feed.rows() == numbered(range(8))


def test_a_damaged_segment_is_a_dead_letter_and_is_quarantined_and_the_rest_goes_on(make: Make) -> None:
    feed = make(slices=1)
    feed.publish({"id": "a", "value": 1})
    end = feed.log.ends()[0]
    feed.publish({"id": "lost", "value": 2})
    feed.publish({"id": "c", "value": 3})
    [segment] = feed.log.path.glob("slice-0000/*.log")
    content = bytearray(segment.read_bytes())
    content[end + 20] ^= 0xFF
    segment.write_bytes(content)
    feed.start()
    feed.drain()
    assert feed.rows() == [{"id": "a", "value": 1}, {"id": "c", "value": 3}]
    [letter] = feed.letters()
    assert letter["line"] is None
    [kept] = (feed.log.path / "quarantine").iterdir()
    assert str(kept) in letter["reason"]


def test_a_query_that_spark_ends_is_started_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = make()
    real, uses = Ingestion._parsed, iter(range(2))

    def failing(self: Ingestion, batch: DataFrame) -> pa.Table:
        if next(uses, None) is not None:
            raise RuntimeError("a fault of ours")
        return real(self, batch)

    monkeypatch.setattr(Ingestion, "_parsed", failing)
    feed.publish(*numbered(range(5)))
    ingestion = feed.start()
    assert "it is started again by itself" in until(lambda: ingestion.problem)
    feed.drain()
    assert feed.rows() == numbered(range(5))
    assert until(lambda: ingestion.problem == "")


def test_stopping_waits_for_the_commit_at_hand_and_nothing_is_committed_afterwards(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = make()
    entered, leave = threading.Event(), threading.Event()
    real = feed.table.append

    def slow(*arguments: Any) -> Any:
        entered.set()
        assert leave.wait(30)
        return real(*arguments)

    monkeypatch.setattr(feed.table, "append", slow)
    feed.publish(*numbered(range(5)))
    ingestion = feed.start()
    assert entered.wait(30)
    stopping = threading.Thread(target=ingestion.stop)
    stopping.start()
    until(ingestion._stopping.is_set)
    assert stopping.is_alive()
    leave.set()
    stopping.join(30)
    assert not stopping.is_alive()
    version = feed.table.version
    feed.publish(*numbered(range(5, 10)))
    assert (feed.rows(), feed.table.version) == (numbered(range(5)), version)
    assert not ingestion._query.isActive  # type: ignore[union-attr]
    assert not ingestion._watcher.is_alive()


def test_stopping_ends_the_waiting_for_a_disk(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = make(retry_after_seconds=3600)
    refusing(monkeypatch, feed, "append", 10**9)
    feed.publish(*numbered(range(5)))
    ingestion = feed.start()
    until(lambda: ingestion.problem)
    feed.stop()
    monkeypatch.undo()
    feed.start()
    feed.drain()
    assert feed.rows() == numbered(range(5))


def test_an_index_that_was_lost_is_made_anew_from_the_dataset(make: Make, tmp_path: Path) -> None:
    feed = make()
    feed.publish(*numbered(range(5)))
    feed.start()
    feed.drain()
    feed.reopen()
    for run in (tmp_path / "ids").iterdir():
        run.unlink()
    feed.publish(*numbered(range(7)))
    feed.start()
    feed.drain()
    assert feed.rows() == numbered(range(7))


def test_an_index_of_a_later_state_does_not_keep_records_from_a_dataset_that_was_put_back(
    make: Make, tmp_path: Path
) -> None:
    index = SeenIds(tmp_path / "ids", spill=1)
    index.add([f"r{number}" for number in range(10)], 1000)
    feed = make()
    feed.publish(*numbered(range(10)))
    feed.start()
    feed.drain()
    assert feed.rows() == numbered(range(10))


def test_markers_are_named_by_slice(tmp_path: Path, make: Make) -> None:
    feed = make(slices=2)
    feed.table.mark({marker(1): 12})
    assert positions(Table(tmp_path / "dataset", feed._schema()), feed.feed) == [0, 12]
