"""A feed's function at a node does what it does in the data cluster, and hurts nobody but its own records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.data.nodes.sharing import FUNCTIONS, UNKEYED, Sharing, on_spark
from tocsin.data.lake.table import Table
from tocsin.data.nodes.functions import FunctionPace
from tocsin.data.nodes.processing import SliceProcessing
from tocsin.errors import InvalidError, StorageError

pytestmark = pytest.mark.spark

Make = Callable[..., Sharing]
Node = Callable[..., SliceProcessing]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes a shared feed with a function."""
    made: list[Sharing] = []

    def make(name: str, directory: str = "", **options: Any) -> Sharing:
        made.append(Sharing(tmp_path / directory, function=f"{FUNCTIONS}:{name}", **options))
        return made[-1]

    yield make
    for each in made:
        each.log.close()


@pytest.fixture(params=["here", "executors"])
def node(request: pytest.FixtureRequest, spark: SparkSession) -> Node:
    return lambda sharing, name="a": on_spark(spark, sharing, name, request.param == "executors")


def records(*values: int) -> list[dict[str, Any]]:
    return [{"id": f"r{value}", "value": value} for value in values]


def letters(sharing: Sharing) -> dict[str, str]:
    return {row["line"]: row["reason"] for row in sharing.letters.read(columns=["line", "reason"]).to_pylist()}


def test_what_it_gives_is_stored_and_what_it_drops_is_not(make: Make, node: Node) -> None:
    sharing = make("doubled")
    sharing.publish(*records(*range(20)))
    processing = node(sharing)
    batch = processing.process(sharing.starts())
    assert sum(part.records for part in batch.parts) == 20
    sharing.commit(batch)
    assert sharing.rows() == {f"r{n}": 2 * n for n in range(20)}
    sharing.publish({"id": "r3", "value": 50}, {"id": "new", "value": 1})
    sharing.commit(processing.process(sharing.starts()))
    assert sharing.rows() == {**{f"r{n}": 2 * n for n in range(20)}, "new": 2}


def test_a_function_that_leaves_nothing_lets_the_slices_go_on(make: Make, node: Node) -> None:
    sharing = make("nothing")
    sharing.publish(*records(*range(20)))
    batch = node(sharing).process(sharing.starts())
    assert batch.files == []
    sharing.commit(batch)
    assert sharing.rows() == {}
    assert sharing.store.markers() == sharing.log.ends()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raises", "it raised ValueError: thirteen"),
        ("dies", "it ended its process (exit status 3)"),
        ("loops", "it took longer than"),
        ("other_type", "it gave the column value as string"),
    ],
)
def test_what_it_fails_on_is_a_dead_letter_and_all_others_are_stored(
    make: Make, node: Node, name: str, reason: str
) -> None:
    sharing = make(name, function_seconds=4.0 if name == "loops" else 60.0)
    sharing.publish(*records(*range(20)))
    sharing.publish_lines(("r1", b"no json"))
    sharing.commit(node(sharing).process(sharing.starts()))
    assert sharing.rows() == {f"r{n}": n for n in range(20) if n != 13}
    found = letters(sharing)
    assert found.pop("no json") == "does not fit the columns of Reports"
    [(line, told)] = found.items()
    assert line == '{"id": "r13", "value": 13}'
    assert told.startswith(f"{FUNCTIONS}:{name}: {reason}")


def test_a_key_that_it_was_not_given_is_refused_as_its_slice_may_be_anothers(make: Make, node: Node) -> None:
    sharing = make("even")
    sharing.publish(*records(4, 5, 10, 12))
    sharing.commit(node(sharing).process(sharing.starts()))
    # It drops odd values, and gives another id beside r10.
    assert sharing.rows() == {"r4": 4, "r12": 12}
    [(line, reason)] = letters(sharing).items()
    assert line == '{"id": "r10", "value": 10}'
    assert "it gave id = 'r10+', a key that no record had which it was given" in reason


def test_without_a_primary_key_it_may_give_what_it_likes(make: Make, node: Node) -> None:
    sharing = make("even", statement=UNKEYED)
    sharing.publish(*records(4, 5, 10))
    sharing.commit(node(sharing).process(sharing.starts()))
    assert sharing.rows() == {"r4": 4, "r10": 10, "r10+": -10}
    assert letters(sharing) == {}


def test_a_dead_letter_stays_one_and_none_is_lost_where_the_function_fails_elsewhere_the_next_time(
    make: Make, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharing = make("raises")
    sharing.publish(*records(*range(12, 16)))
    offered = node(sharing).process(sharing.starts())
    adopt = Table.adopt_unstamped

    def refusing(table: Table, *arguments: Any) -> object:
        if table is sharing.table:
            raise StorageError("the disk is full")
        return adopt(table, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Table, "adopt_unstamped", refusing)
        with pytest.raises(StorageError):
            sharing.commit(offered)
    assert len(letters(sharing)) == 1
    # The same records once more, of which it takes the first this time, and fails on another.
    sharing.feed = make("raises_elsewhere", "other").feed
    sharing.open()
    sharing.commit(node(sharing, "b").process(sharing.starts()))
    found = sharing.letters.read(columns=["line"])["line"].to_pylist()
    assert sorted(found) == ['{"id": "r13", "value": 13}', '{"id": "r14", "value": 14}']
    assert sharing.rows() == {"r12": 12, "r15": 15}


def test_where_it_is_not_allowed_or_not_there_a_node_cannot_begin(make: Make, spark: SparkSession) -> None:
    sharing = make("doubled")
    with pytest.raises(InvalidError, match=rf"functions of the module {FUNCTIONS} are not allowed here.*this node"):
        on_spark(spark, sharing, functions=())
    with pytest.raises(InvalidError, match="cannot be imported"):
        on_spark(spark, make("is_not_there", directory="other"))


def test_a_batch_is_as_large_as_the_function_has_done_in_about_two_seconds() -> None:
    pace = FunctionPace(10 << 20)
    first = pace.max_bytes
    assert first < 1 << 20
    for _ in range(20):
        pace.took(pace.max_bytes, 0.001)
    assert pace.max_bytes == 10 << 20
    pace.took(10 << 20, 20)
    assert pace.max_bytes == 1 << 20
    pace.took(1 << 20, 1000)
    assert pace.max_bytes == first
    pace.took(10, 1.0)
    assert pace.max_bytes == first
    assert FunctionPace(1000).max_bytes == 1000
