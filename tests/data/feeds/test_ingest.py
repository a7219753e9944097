"""From the log into the dataset with Spark: each record once, as it was accepted, and in order."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from tests.data.feeds.conftest import embedded_only
from tests.data.feeds.ingesting import KEYED, UNKEYED, Make, numbered
from tests.waiting import until
from tocsin.data.feeds.ingest import marker, positions
from tocsin.data.lake.table import Table
from tocsin.schema.records import RecordDecoder

pytestmark = pytest.mark.spark


@pytest.fixture(params=["embedded", "kafka"])
def log(request: pytest.FixtureRequest) -> str:
    """Where the logs of feeds are."""
    return str(request.param)


@pytest.mark.parametrize("streaming", [False, True], ids=["followed", "streamed"])
def test_every_record_is_stored_once_before_and_after_a_restart(make: Make, streaming: bool) -> None:
    feed = make(streaming=streaming)
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


# Of a topic the first batches are small, as nobody knows yet how large its records are.
@embedded_only
def test_a_batch_that_several_tasks_read_is_stored_in_its_order(make: Make) -> None:
    feed = make(UNKEYED, slices=2)
    records = [{"id": f"{number % 5}" + "x" * 1000, "value": number} for number in range(6000)]
    feed.publish(*records[:3000])
    feed.start()
    feed.drain()
    # The first batches are small, as nobody knows yet what their rows take.
    begun = feed.commits
    feed.publish(*records[3000:])
    feed.drain()
    feed.stop()
    assert feed.commits == begun + 1
    stored = feed.table.read(columns=["id", "value"]).to_pylist()
    for name in {record["id"] for record in records}:
        assert [row["value"] for row in stored if row["id"] == name] == [r["value"] for r in records if r["id"] == name]
    assert len(stored) == 6000


def test_a_log_that_is_empty_is_waited_for_and_stopping_ends_the_waiting(make: Make) -> None:
    feed = make()
    feed.start()
    feed.publish(*numbered(range(2)))
    feed.drain()
    feed.stop()
    assert feed.rows() == numbered(range(2))


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
    batch = feed.log.batch
    monkeypatch.setattr(feed.log, "batch", lambda spark, starts, ends: batch(spark, [0] * len(starts), ends))
    feed.publish({"id": "r10", "value": 10})
    feed.commits = 0
    feed.start()
    until(lambda: feed.commits)
    feed.drain()
    assert sorted(row["value"] for row in feed.rows()) == list(range(11))
    assert feed.table.version == version + 1


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


def test_markers_are_named_by_slice(tmp_path: Path, make: Make) -> None:
    feed = make(slices=2)
    feed.table.mark({marker(1): 12})
    assert positions(Table(tmp_path / "dataset", feed._schema()), feed.feed) == [0, 12]
