"""What is damaged, refused or broken off between the log and the dataset: it is told, and each record stays once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.data.feeds.conftest import embedded_only
from tests.data.feeds.ingesting import APPEND, KEYED, Ingesting, Make, numbered
from tests.waiting import until
from tocsin.data.feeds.identity import SeenIds
from tocsin.data.feeds.ingest import Ingestion
from tocsin.errors import StorageError
from tocsin.slices.assignment import slice_by_hash

pytestmark = pytest.mark.spark


@pytest.fixture(params=["embedded", "kafka"])
def log(request: pytest.FixtureRequest) -> str:
    """Where the logs of feeds are."""
    return str(request.param)


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


@embedded_only
def test_a_damaged_segment_is_a_dead_letter_and_is_quarantined_and_the_rest_goes_on(make: Make, tmp_path: Path) -> None:
    feed = make(slices=1)
    feed.publish({"id": "a", "value": 1})
    end = feed.log.ends()[0]
    feed.publish({"id": "lost", "value": 2})
    feed.publish({"id": "c", "value": 3})
    [segment] = (tmp_path / "feed").glob("slice-0000/*.log")
    content = bytearray(segment.read_bytes())
    content[end + 20] ^= 0xFF
    segment.write_bytes(content)
    feed.start()
    feed.drain()
    assert feed.rows() == [{"id": "a", "value": 1}, {"id": "c", "value": 3}]
    [letter] = feed.letters()
    assert letter["line"] is None
    [kept] = (tmp_path / "feed" / "quarantine").iterdir()
    assert str(kept) in letter["reason"]


def test_an_ingestion_that_ends_by_an_error_is_begun_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = make()
    real, uses = Ingestion._parse, iter(range(2))

    def failing(self: Ingestion, batch: DataFrame) -> pa.Table:
        if next(uses, None) is not None:
            raise RuntimeError("a fault of ours")
        return real(self, batch)

    monkeypatch.setattr(Ingestion, "_parse", failing)
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
    assert ingestion._following.ended(1)  # type: ignore[union-attr]
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


def test_a_slice_that_makes_batches_fail_is_left_out_and_told_and_the_others_go_on(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingesting = make(APPEND, slices=4)
    ingesting.publish(*numbered(range(40)))
    batch, bad = ingesting.log.batch, slice_by_hash("r0", 4)

    def failing(spark: SparkSession, starts: Sequence[int], ends: Sequence[int]) -> DataFrame:
        if ends[bad] > starts[bad]:
            raise RuntimeError("what is wrong with it")
        return batch(spark, starts, ends)

    monkeypatch.setattr(ingesting.log, "batch", failing)
    ingestion = ingesting.start()
    others = [row["id"] for row in numbered(range(40)) if slice_by_hash(row["id"], 4) != bad]
    until(lambda: [row["id"] for row in ingesting.rows()] == sorted(others))
    sentence = f"feed reports: slice {bad} is left out for now: what is wrong with it"
    until(lambda: sentence in ingestion.problem)
    more = next(name for name in (f"s{n}" for n in range(100)) if slice_by_hash(name, 4) != bad)
    ingesting.publish({"id": more, "value": 1})
    until(lambda: len(ingesting.rows()) == len(others) + 1)
    monkeypatch.undo()
    ingesting.drain()
    assert len(ingesting.rows()) == 41
    until(lambda: ingestion.problem == "")
