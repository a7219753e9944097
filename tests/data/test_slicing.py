"""How CREATE FEED says which slice a record goes to: as the statement has it, for the life of the log."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import floor
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from tests.data.world import World
from tocsin.data.feeds.reader import Chunk, read
from tocsin.data.language.parser import CreateFeed, parse
from tocsin.data.pipeline import Pipeline
from tocsin.data.store import Store
from tocsin.errors import StatementError, UnavailableError
from tocsin.model.messages import Published
from tocsin.schema.definitions import Feed
from tocsin.slices.assignment import slice_by_hash

FUNCTIONS = "tests.data.processing.functions"
DATASET = """CREATE DATASET Readings (id STRING, sensor BIGINT, x DOUBLE, y DECIMAL(9, 1), at TIMESTAMP) PRIMARY KEY id;
CREATE KEYED DATASET Sensors (sensor BIGINT, x DOUBLE) PRIMARY KEY sensor;"""


def made(directory: Path, **feeds: Any) -> World:
    """A catalog whose feeds take publications; nothing here needs Spark."""
    return World(cast(Any, None), directory, feeds={"slices": 4, **feeds})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = made(tmp_path / "data", functions=[FUNCTIONS])
    world.apply(DATASET)
    yield world
    world.close()


def publish(world: World, *records: Mapping[str, object]) -> Published:
    body = json.dumps([{"id": f"r{n}", **record} for n, record in enumerate(records)]).encode()
    return asyncio.run(world.catalog.pipelines["readings"].admission.publish(body, "application/json"))


def slices(world: World) -> dict[int, list[dict[str, Any]]]:
    """What is in the log and not in the dataset, by slice."""
    pipeline: Pipeline = world.catalog.pipelines["readings"]
    path = world.settings.data.directory.resolve() / "feeds" / "readings"
    found: dict[int, list[dict[str, Any]]] = {}
    for index, (start, end) in enumerate(zip(pipeline._read, pipeline.log.ends(), strict=True)):
        for entry in read(path, index, start, end):
            assert isinstance(entry, Chunk)
            found.setdefault(index, []).extend(map(json.loads, entry.records))
    return found


def test_figure_13_sensors_go_to_the_slices_of_their_remainders(world: World) -> None:
    world.apply("CREATE FEED readings INTO Readings SLICED BY sensor USING modulo INTO 10 SLICES")
    publish(world, *({"sensor": sensor} for sensor in (21, 1, 52, 19)))
    found = {record["sensor"]: index for index, records in slices(world).items() for record in records}
    assert found == {21: 1, 1: 1, 52: 2, 19: 9}


def test_figure_11_things_go_to_the_node_that_has_their_slice(world: World) -> None:
    world.apply("CREATE FEED readings INTO Readings SLICED BY sensor USING modulo INTO 10 SLICES")
    publish(world, *({"sensor": sensor} for sensor in (31, 13, 8)))
    nodes = {**dict.fromkeys(range(6), "first"), **dict.fromkeys(range(6, 10), "second")}
    found = {record["sensor"]: nodes[index] for index, records in slices(world).items() for record in records}
    assert found == {31: "first", 13: "first", 8: "second"}


def test_records_are_counted_by_slice_and_shown(world: World) -> None:
    world.apply("CREATE FEED readings INTO Readings SLICED BY sensor USING modulo INTO 4 SLICES")
    assert world.shown("FEEDS")["readings"]["slice_records"] == [0, 0, 0, 0]
    publish(world, *({"sensor": sensor} for sensor in (1, 5, 9, 2, -1)))
    publish(world, {"sensor": 1}, {"sensor": "no number"})
    shown = world.shown("FEEDS")["readings"]
    assert (shown["records"], shown["slice_records"]) == (6, [0, 4, 1, 1])
    assert world.catalog.pipelines["readings"].health().slice_records == [0, 4, 1, 1]
    assert "USING modulo INTO 4 SLICES" in shown["statement"]


def test_random_data_go_where_an_oracle_says(world: World) -> None:
    chance = Random(5)
    records = [
        {"x": chance.uniform(-1e6, 1e6), "y": round(chance.uniform(-5000, 5000), 1), "sensor": chance.randrange(10**12)}
        for _ in range(300)
    ]
    expected: dict[str, Callable[[Mapping[str, Any]], int]] = {
        "SLICED BY x, y USING grid(500)": lambda r: slice_by_hash(f"{floor(r['x'] / 500)} {floor(r['y'] / 500)}", 16),
        "SLICED BY sensor USING modulo": lambda r: r["sensor"] % 16,
        "SLICED BY sensor": lambda r: slice_by_hash(r["sensor"], 16),
        "SLICED BY sensor, x": lambda r: slice_by_hash(f"{r['sensor']}\x1f{r['x']!r}", 16),
        f"SLICED BY sensor USING '{FUNCTIONS}:by_tens'": lambda r: r["sensor"] // 10 % 16,
    }
    for slicing, oracle in expected.items():
        world.apply(f"CREATE FEED readings INTO Readings {slicing} INTO 16 SLICES")
        publish(world, *records)
        counted = Counter(map(oracle, records))
        shown = world.shown("FEEDS")["readings"]
        assert shown["slice_records"] == [counted[index] for index in range(16)], slicing
        assert all(oracle(record) == index for index, found in slices(world).items() for record in found)
        forget(world)


def forget(world: World) -> None:
    """Has the dataset be done with the feed's log, without Spark, and drops the feed."""
    pipeline = world.catalog.pipelines["readings"]
    ends = {f"slice-{index}": end for index, end in enumerate(pipeline.log.ends())}
    world.catalog.tables["Readings"].mark(ends)
    pipeline.committed()
    world.apply("DROP FEED readings")


def test_by_chance_no_column_is_needed_and_slices_are_even(world: World) -> None:
    world.apply("CREATE DATASET Loose (n INT); CREATE FEED readings INTO Loose SLICED USING random INTO 4 SLICES")
    body = json.dumps([{"n": None}] * 2000).encode()
    asyncio.run(world.catalog.pipelines["readings"].admission.publish(body, "application/json"))
    counts = world.shown("FEEDS")["readings"]["slice_records"]
    assert sum(counts) == 2000
    assert min(counts) > 350


def test_a_record_that_lacks_a_column_it_is_sliced_by_is_refused(world: World) -> None:
    world.apply("CREATE FEED readings INTO Readings SLICED BY x, y USING grid(500)")
    answer = publish(world, {"x": 1.0}, {"x": 1.0, "y": 2.0})
    assert answer.accepted == 1
    assert "y" in answer.refused[0].reason


def test_a_function_that_fails_refuses_nobody_and_is_counted(world: World) -> None:
    world.apply(f"CREATE FEED readings INTO Readings SLICED BY sensor USING '{FUNCTIONS}:by_tens'")
    assert publish(world, {"sensor": 25}, {"sensor": -1}).accepted == 2
    shown = world.shown("FEEDS")["readings"]
    assert (sum(shown["slice_records"]), shown["assignment_failures"]) == (2, 1)
    assert [record["sensor"] for record in slices(world)[2]][:1] == [25]


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("SLICED USING 'os:getenv'", 'feeds.functions = ["os"]'),
        (f"SLICED USING '{FUNCTIONS}.deeper:f'", "are not allowed here"),
        (f"SLICED USING '{FUNCTIONS}:nothing_of_it'", "cannot be imported: AttributeError"),
        (f"SLICED USING '{FUNCTIONS}:Any'", "is one of typing: name it there"),
        ("PROCESSED BY 'os:system'", 'feeds.functions = ["os"]'),
        (f"PROCESSED BY '{FUNCTIONS}:BAD'", "is no function"),
    ],
)
def test_a_function_that_is_not_allowed_or_not_there_is_refused_at_its_place(
    world: World, clause: str, said: str
) -> None:
    with pytest.raises(StatementError, match=re.escape(said)) as caught:
        world.apply(f"CREATE FEED readings INTO Readings\n  {clause}")
    assert (caught.value.line, caught.value.column) == (2, 3 + clause.index("'"))
    assert world.catalog.feeds == {}


def test_by_default_no_function_is_allowed(tmp_path: Path) -> None:
    world = made(tmp_path)
    with pytest.raises(StatementError, match="an operator allows them"):
        world.apply(DATASET + f"CREATE FEED readings INTO Readings PROCESSED BY '{FUNCTIONS}:unchanged'")
    world.close()


def test_a_function_that_was_allowed_and_is_no_more_keeps_the_feed_from_taking_records(tmp_path: Path) -> None:
    world = made(tmp_path, functions=[FUNCTIONS])
    statement = f"CREATE FEED readings INTO Readings SLICED BY sensor USING '{FUNCTIONS}:by_tens';"
    world.apply(DATASET + statement)
    publish(world, {"sensor": 25})
    world.close()
    later = made(tmp_path)
    with pytest.raises(UnavailableError, match="cannot tell the slices of its records"):
        publish(later, {"sensor": 26})
    assert "feeds.functions" in later.catalog.pipelines["readings"].health().error
    # What is as it was needs nobody's leave.
    assert later.actions(statement) == ["unchanged"]
    later.close()


def test_a_keyed_dataset_needs_the_records_of_a_key_in_one_slice(world: World) -> None:
    for slicing in ("SLICED USING random", "SLICED BY sensor, x", "SLICED BY x"):
        with pytest.raises(StatementError, match="say SLICED BY sensor"):
            world.apply(f"CREATE FEED sensors INTO Sensors {slicing}")
    world.apply("CREATE FEED sensors INTO Sensors SLICED USING modulo")


def test_what_was_stored_before_there_were_assignments_is_a_feed_by_hash(world: World, tmp_path: Path) -> None:
    world.apply("CREATE FEED readings INTO Readings SLICED BY sensor INTO 4 SLICES")
    world.close()
    store = Store(world.settings.data.directory)
    old = '{"name":"readings","dataset":"Readings","sliced_by":"sensor","slices":4,"terms":{"bound":[],"groups":[]}}'
    with store.definitions._database.changing() as connection:
        connection.execute("UPDATE definitions SET content = ? WHERE kind = ?", (old, "feed"))
    store.close()
    world.open()
    assert world.catalog.feeds["readings"] == Feed("readings", "Readings", "sensor", 4)
    assert world.actions("CREATE FEED readings INTO Readings SLICED BY sensor INTO 4 SLICES") == ["unchanged"]


def test_a_feed_is_changed_only_when_that_is_asked_for(world: World) -> None:
    world.apply("CREATE FEED readings INTO Readings SLICED BY sensor INTO 4 SLICES")
    for changed in ("USING modulo INTO 4 SLICES", "INTO 8 SLICES"):
        [outcome] = world.apply(f"CREATE FEED readings INTO Readings SLICED BY sensor {changed}")
        assert (outcome.action, "CREATE OR REPLACE FEED" in outcome.detail) == ("changed", True)
    [outcome] = world.apply("CREATE FEED readings INTO Readings SLICED BY sensor INTO 8 SLICES")
    assert "a log keeps its slices" in outcome.detail


def test_the_statements_that_the_page_shows_can_be_read() -> None:
    page = (Path(__file__).parents[2] / "docs" / "slices.md").read_text(encoding="utf-8")
    [text] = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert [cast(CreateFeed, statement).using for statement in parse(text)] == [
        "",
        "modulo",
        "grid:500",
        "random",
        "flights.slicing:northern",
    ]
