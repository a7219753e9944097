"""A function that chooses slices: whatever it does with a record, all others have theirs, and in a bounded time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.data.processing.functions import BAD
from tests.waiting import until
from tocsin.data.feeds.admission import Admission
from tocsin.data.feeds.log import FeedLog
from tocsin.data.processing import slicing
from tocsin.data.processing.slicing import FunctionSlicing
from tocsin.errors import BusyError, UnavailableError
from tocsin.model.terms import Terms
from tocsin.schema.definitions import Column, Dataset, DatasetKind, Feed
from tocsin.schema.types import parse_type
from tocsin.settings import FeedsSettings
from tocsin.slices.assignment import slice_by_hash, slice_without_function

FUNCTIONS = "tests.data.processing.functions"
COLUMNS = (Column("id", parse_type("STRING")), Column("sensor", parse_type("BIGINT")))
BY_ID = Dataset("Readings", DatasetKind.APPEND, COLUMNS, "id")
BY_SENSOR = Dataset("Sensors", DatasetKind.KEYED, COLUMNS, "sensor")
SLICES = 4

pytestmark = pytest.mark.process


class Slicing:
    """Feeds with functions of ``functions.py``, which are let go of in the end."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._directory, self._stack = directory, stack

    def function(self, name: str, dataset: Dataset = BY_ID, seconds: float = 0.5) -> FunctionSlicing:
        made = FunctionSlicing(self._feed(name, dataset), dataset, self._settings(seconds))
        self._stack.callback(made.close)
        return made

    def admission(self, name: str, dataset: Dataset = BY_ID, seconds: float = 0.5) -> Admission:
        log = self._stack.enter_context(FeedLog(self._directory / dataset.name, SLICES, 1 << 20))
        made = Admission(self._feed(name, dataset), dataset, log, self._settings(seconds), lambda: 0)
        self._stack.callback(made.release)
        return made

    def _feed(self, name: str, dataset: Dataset) -> Feed:
        using = f"{FUNCTIONS}:{name}" if name.isidentifier() and name != "hash" else name
        return Feed("readings", dataset.name, "sensor", SLICES, Terms(groups=None), using=using)

    def _settings(self, seconds: float) -> FeedsSettings:
        return FeedsSettings(functions=[FUNCTIONS, "nowhere"], slicing_seconds=seconds)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Slicing]:
    with ExitStack() as stack:
        yield Slicing(tmp_path, stack)


def choose(function: FunctionSlicing, *values: Any) -> list[int | str]:
    return asyncio.run(function.choose(values))


def body(*sensors: int) -> bytes:
    return json.dumps([{"id": f"r{number}", "sensor": sensor} for number, sensor in enumerate(sensors)]).encode()


def test_each_value_goes_where_the_function_says_and_comes_to_it_as_it_is(made: Slicing) -> None:
    values = ["a", 1, 2.5, Decimal("2.50"), datetime(2026, 1, 1, tzinfo=UTC), True, ("a", 1, None)]
    assert choose(made.function("kinds"), *values) == [0, 1, 2, 3, 0, 1, 2]
    assert choose(made.function("by_tens"), *range(5000)) == [value // 10 % SLICES for value in range(5000)]
    assert choose(made.function("by_tens")) == []


@pytest.mark.parametrize(
    ("name", "seconds"), [("slices_but_loops", 0.5), ("slices_but_dies", 0.5), ("slices_but_lies", 3)]
)
def test_a_value_that_it_ends_or_hangs_on_goes_by_its_hash_and_the_others_where_they_belong(
    made: Slicing, name: str, seconds: float
) -> None:
    function = made.function(name, seconds=seconds)
    values = [*range(4), BAD, *range(20, 23)]
    expected = [slice_without_function(value, SLICES) if value == BAD else value % SLICES for value in values]
    assert choose(function, *values) == expected
    assert function.failures == 1
    assert choose(function, 5, 6) == [1, 2]
    assert function.problem == ""


def test_with_many_bad_values_it_is_soon_not_asked_any_more(made: Slicing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slicing, "CUT", 4)
    function = made.function("slices_but_loops", seconds=0.1)
    choose(function)
    asked = list[int]()
    run = function._process.run

    def noted(values: Any, slices: int, seconds: float) -> list[int]:
        asked.append(len(values))
        return run(values, slices, seconds)

    monkeypatch.setattr(function._process, "run", noted)
    assert choose(function, *[BAD] * 4000) == [slice_without_function(BAD, SLICES)] * 4000
    assert function.failures == 4000
    assert len(asked) < 50
    assert choose(function, 7) == [3]


def test_where_a_key_must_stay_in_one_slice_such_a_record_is_refused_by_itself(made: Slicing) -> None:
    admission = made.admission("slices_but_loops", BY_SENSOR)
    answer = asyncio.run(admission.publish(body(1, BAD, 2), "application/json"))
    assert answer.accepted == 2
    assert [refusal.index for refusal in answer.refused] == [1]
    assert "did not tell its slice (it took longer than" in answer.refused[0].reason
    assert (admission.slice_records, admission.assignment_failures) == ([0, 1, 1, 0], 1)
    assert asyncio.run(admission.publish(body(-1, "x", 3), "application/json")).accepted == 2  # type: ignore[arg-type]


def test_an_exception_is_the_same_every_time_and_refuses_nobody(made: Slicing) -> None:
    admission = made.admission("by_tens", BY_SENSOR)
    assert asyncio.run(admission.publish(body(-1, -1), "application/json")).accepted == 2
    assert admission.slice_records[slice_by_hash("-1", SLICES)] == 2
    assert admission.assignment_failures == 2


def test_what_one_subscriber_sends_costs_the_others_in_the_same_request_nothing(made: Slicing) -> None:
    admission = made.admission("slices_but_dies", BY_SENSOR)
    shares = [
        {"subscriber": name, "groups": [], "records": [{"id": name, "sensor": sensor} for sensor in sensors]}
        for name, sensors in (("ann", [1, 2]), ("bob", [BAD, 3]), ("eve", [4]))
    ]
    answer = asyncio.run(admission.publish_shares(json.dumps(shares).encode()))
    assert (answer.accepted, [refusal.index for refusal in answer.refused], answer.unlisted) == (4, [2], {})


async def test_while_it_hangs_the_event_loop_and_other_feeds_go_on(made: Slicing) -> None:
    hanging, other = made.admission("slices_but_loops", seconds=2), made.admission("hash", BY_SENSOR)
    await hanging.publish(body(1), "application/json")
    waiting = asyncio.create_task(hanging.publish(body(BAD), "application/json"))
    assert (await other.publish(body(1, 2), "application/json")).accepted == 2
    assert (await other.publish(body(*range(2000)), "application/json")).accepted == 2000
    assert not waiting.done()
    assert (await waiting).accepted == 1


async def test_those_that_wait_for_it_are_no_more_than_so_many(made: Slicing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slicing, "_MOST_WAITING", 2)
    admission = made.admission("slices_but_loops", seconds=0.5)
    waiting = [asyncio.create_task(admission.publish(body(BAD), "application/json")) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(BusyError, match="2 publications wait for their slices from"):
        await admission.publish(body(1), "application/json")
    assert [answer.accepted for answer in await asyncio.gather(*waiting)] == [1, 1]


def test_one_that_cannot_be_imported_is_told_and_tried_again_after_a_while(
    made: Slicing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    function = made.function("nowhere:f")
    until(lambda: "the function nowhere:f cannot be imported" in function.problem)
    (tmp_path / "nowhere.py").write_text("def f(value, slices):\n    return 3\n", encoding="utf-8")
    with pytest.raises(UnavailableError, match="cannot tell the slices of its records"):
        choose(function, 1)
    monkeypatch.setattr(function, "_again", 0.0)
    assert choose(function, 1) == [3]
    assert function.problem == ""


def test_its_process_is_gone_when_the_feed_is(made: Slicing) -> None:
    function = made.function("by_tens")
    choose(function, 1)
    process = function._process._process
    assert process is not None
    function.close()
    until(lambda: process.poll() is not None)
