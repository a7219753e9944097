"""A feed's function between log and dataset: what it gives is stored once, what it fails on is a dead letter."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.data.feeds.conftest import embedded_only
from tests.data.feeds.ingesting import APPEND, KEYED, UNKEYED, Ingesting, Make, numbered
from tests.data.processing import functions
from tests.waiting import until
from tocsin.data.feeds.ingest import Ingestion
from tocsin.errors import StorageError

pytestmark = pytest.mark.spark


@pytest.fixture(params=["embedded", "kafka"])
def log(request: pytest.FixtureRequest) -> str:
    """Where the logs of feeds are."""
    return str(request.param)


MODULE = "tests.data.processing.functions"
NESTED = (
    "CREATE DATASET Reports (id STRING, value BIGINT, price DECIMAL(9, 2), at TIMESTAMP, day DATE, tags ARRAY<STRING>, "
    "place STRUCT<x: DOUBLE, y: DOUBLE>, names MAP<STRING, INT>) PRIMARY KEY id"
)


def processed(make: Make, function: str, statement: str = APPEND, **options: Any) -> Ingesting:
    return make(statement, processed_by=f"{MODULE}:{function}", functions=[MODULE], **options)


def test_what_it_changes_drops_and_adds_is_what_is_stored_and_slices_come_to_their_ends(make: Make) -> None:
    feed = processed(make, "even")
    feed.publish(*numbered(range(1, 40)))
    feed.start()
    feed.drain()
    feed.publish({"id": "odd", "value": 1})
    feed.drain()
    kept = [record for record in numbered(range(1, 40)) if record["value"] % 2 == 0]
    added = [{"id": f"r{number}+", "value": -number} for number in (10, 20, 30)]
    assert feed.rows() == sorted(kept + added, key=lambda row: str(row["id"]))
    assert feed.letters() == []


def test_values_of_all_types_go_through_it_as_they_are(make: Make) -> None:
    feed = processed(make, "unchanged", NESTED)
    full = {
        "id": "a",
        "value": 2**53 + 1,
        "price": 1234567.89,
        "at": "2026-01-31T12:00:00.123456Z",
        "day": "2024-02-29",
        "tags": ["x", None],
        "place": {"x": 0.1, "y": None},
        "names": {"one": 1},
    }
    feed.publish(full, {"id": "b", "value": None})
    plain = make(NESTED, directory="plain")
    plain.publish(full, {"id": "b", "value": None})
    for each in (feed, plain):
        each.start()
        each.drain()
        each.stop()
    assert feed.rows() == plain.rows()
    assert [row["value"] for row in feed.rows()] == [2**53 + 1, None]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("raises", "it raised ValueError: thirteen"),
        ("dies", "it ended its process (exit status 3)"),
        ("loops", "it took longer than"),
        ("too_many", "it gave 100,000 rows for 1 record"),
    ],
)
def test_one_record_at_fault_is_a_dead_letter_and_takes_nobody_along(make: Make, function: str, reason: str) -> None:
    feed = processed(make, function, slices=2, function_seconds=8)
    feed.publish(*numbered(range(10, 16)))
    feed.log.append({0: [b"no JSON"]})
    ingestion = feed.start()
    feed.drain()
    feed.publish(*numbered(range(20, 25)))
    feed.drain()
    assert feed.rows() == numbered([10, 11, 12, 14, 15, *range(20, 25)])
    letters = {letter["line"]: letter["reason"] for letter in feed.letters()}
    assert set(letters) == {json.dumps(numbered([functions.BAD])[0]), "no JSON"}
    assert f"{MODULE}:{function}: {reason}" in letters[json.dumps(numbered([functions.BAD])[0])]
    assert ingestion.problem == ""


def test_ids_are_told_by_what_it_gave(make: Make) -> None:
    feed = processed(make, "even")
    # Beside r10 it makes r10+, which somebody has published already.
    feed.publish({"id": "r10+", "value": 2})
    feed.start()
    feed.drain()
    feed.publish(*numbered([10, 12]), *numbered([12]))
    feed.drain()
    assert feed.rows() == [{"id": "r10", "value": 10}, {"id": "r10+", "value": 2}, {"id": "r12", "value": 12}]


def test_in_a_keyed_dataset_the_newest_of_what_it_gave_counts(make: Make) -> None:
    feed = processed(make, "doubled", KEYED)
    feed.publish(*[{"id": "a", "value": number} for number in range(50)])
    feed.start()
    feed.drain()
    feed.publish({"id": "a", "value": 100}, {"id": "b", "value": 1})
    feed.drain()
    assert feed.rows() == [{"id": "a", "value": 200}, {"id": "b", "value": 2}]


@pytest.mark.parametrize("seed", range(2))
def test_through_refusals_and_restarts_each_record_is_processed_once(
    make: Make, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    feed = processed(make, "raises", UNKEYED)
    published: list[dict[str, Any]] = []
    for _ in range(4):
        records = [{"id": f"r{len(published) + n}", "value": chance.randrange(10, 20)} for n in range(40)]
        published += records
        feed.publish(*records)
        fail_some_commits(monkeypatch, feed, chance)
        feed.start()
        if chance.random() < 0.5:
            feed.drain()
        feed.reopen()
    feed.start()
    feed.drain()
    good = [record for record in published if record["value"] != functions.BAD]
    assert feed.rows() == sorted(good, key=lambda row: str(row["id"]))
    dead = sorted(json.loads(letter["line"])["id"] for letter in feed.letters())
    assert dead == sorted(record["id"] for record in published if record["value"] == functions.BAD)


def fail_some_commits(monkeypatch: pytest.MonkeyPatch, feed: Ingesting, chance: random.Random) -> None:
    """Has commits to the dataset fail at times, before or after they have come about."""
    real = feed.table.append

    def uncertain(*arguments: Any) -> Any:
        fate = chance.random()
        if fate < 0.3:
            raise StorageError("too early")
        snapshot = real(*arguments)
        if fate < 0.6:
            raise StorageError("too late")
        return snapshot

    monkeypatch.setattr(feed.table, "append", uncertain)


def test_a_dead_letter_stays_one_though_its_function_would_take_it_after_a_crash(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = processed(make, "raises", UNKEYED, slices=1)
    feed.publish(*numbered([12, 13, 14]))
    refused = pytest.MonkeyPatch()
    refused.setattr(feed.table, "append", _refused)
    ingestion = feed.start()
    until(lambda: ingestion.problem)
    assert len(feed.letters()) == 1
    feed.reopen()
    refused.undo()
    # This time it fails on another.
    monkeypatch.setattr(Ingestion, "_function", _other_function(Ingestion._function, f"{MODULE}:unchanged"))
    feed.start()
    feed.drain()
    assert [row["value"] for row in feed.rows()] == [12, 14]
    assert [json.loads(letter["line"])["value"] for letter in feed.letters()] == [13]


def _refused(*arguments: Any) -> Any:
    raise StorageError("the disk is full")


def _other_function(real: Any, function: str) -> Any:
    from dataclasses import replace

    return lambda self: replace(real(self), function=function)


def test_a_function_that_is_not_allowed_any_more_or_not_to_be_had_is_waited_for(make: Make) -> None:
    feed = make(APPEND, processed_by=f"{MODULE}:unchanged")
    feed.publish(*numbered(range(3)))
    ingestion = feed.start()
    assert f'feeds.functions = ["{MODULE}"]' in until(lambda: ingestion.problem)
    feed.stop()
    gone = make(APPEND, processed_by="tests.nowhere:f", functions=["tests.nowhere"], directory="gone")
    gone.publish(*numbered(range(3)))
    ingestion = gone.start()
    assert "tests.nowhere:f cannot be imported" in until(lambda: ingestion.problem)
    gone.stop()
    assert (feed.rows(), feed.letters(), gone.rows(), gone.letters()) == ([], [], [], [])


# It takes its time, and the log has no part in it.
@embedded_only
def test_stopping_does_not_wait_for_a_function(make: Make) -> None:
    feed = processed(make, "loops", function_seconds=3600)
    feed.publish(*numbered([functions.BAD]))
    feed.start()
    until(_is_looping)
    feed.stop()
    until(lambda: not _is_looping())
    assert (feed.rows(), feed.letters()) == ([], [])


def _is_looping() -> bool:
    """Whether there is a process of that function which has had a batch for long enough to be at it."""
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"functions:loops" in status.read_bytes() and _seconds(status.with_name("stat")) > 2:
                return True
        except (FileNotFoundError, ProcessLookupError):
            continue
    return False


def _seconds(stat: Path) -> float:
    fields = stat.read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
