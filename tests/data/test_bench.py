"""The benchmark itself: small enough to be quick, real enough that its figures mean what they say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from tocsin.bench.data.bench import DataBench, locations, reports
from tocsin.bench.data.executions import executions, near
from tocsin.bench.data.ingestion import bodies
from tocsin.bench.data.moves import intervals
from tocsin.bench.data.nodes import nodes
from tocsin.bench.report import Figure, quantile, show


def test_a_table_has_a_row_for_every_figure_and_says_whether_its_target_was_met() -> None:
    console = Console(record=True, width=160)
    show(
        [
            Figure("executions", "many", 1234.5, "s", 2.0, "few", "at most 2×", True),
            Figure("executions", "more", 0.5, "s", 9.0, "few", "at most 2×", False),
        ],
        console,
        "measured here",
    )
    text = console.export_text()
    assert text.startswith("measured here")
    assert "1,234 s" in text
    assert "yes" in text
    assert "no" in text


def test_a_quantile_is_one_of_the_values() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([3.0, 1.0, 2.0], 0.99) == 3.0


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Iterator[DataBench]:
    """A data cluster's parts, with the bench's application."""
    bench = DataBench(spark, tmp_path)
    yield bench
    bench.store.close()


def test_published_records_have_about_500_bytes() -> None:
    lines = bodies(1, 1)[0].split(b"\n")
    assert all(450 <= len(line) <= 550 for line in lines)


@pytest.mark.spark
def test_each_new_record_is_found_by_exactly_one_subscription(bench: DataBench) -> None:
    bench.attach("OfType", [{"event": f"e{i}"} for i in range(50)])
    bench.skip("OfType")
    bench.tables["Reports"].append(reports(50, 50, 1), {})
    assert sorted(bench.execute("OfType").bes) == sorted(bench.subscriptions.segments("OfType").ids())


@pytest.mark.spark
def test_the_parts_run_and_give_their_figures(spark: SparkSession, tmp_path: Path) -> None:
    said: list[str] = []
    figures = executions(spark, tmp_path, [100, 200], said.append, sample=2, turns=1, warm=0)
    assert [f.name for f in figures][:2] == ["100 subscriptions", "one query each, in all"]
    assert all(f.value > 0 for f in figures)
    executed, gridded, looped = near(spark, tmp_path, said.append, users=200, turns=1, warm=0)
    assert executed.value > 0
    assert gridded.value > 0
    assert looped.ratio is not None
    assert all(figure.value > 0 for figure in nodes(spark, tmp_path / "nodes", said.append, records=2000, turns=1))
    assert said


@pytest.mark.spark
def test_the_grid_and_the_nested_loop_find_the_same_users(bench: DataBench) -> None:
    users, new = locations(300, 1, extent=5000), reports(40, 8, 2, extent=5000)
    bench.tables["Locations"].append(users, {})
    bench.attach("NearMe", [{"user": f"u{i}"} for i in range(300)])
    bench.skip("NearMe")
    bench.tables["Reports"].append(new, {})
    places = list(zip(new["x"].to_pylist(), new["y"].to_pylist(), strict=True))
    expected = sum(
        any((x - a) ** 2 + (y - b) ** 2 <= 500**2 for a, b in places)
        for x, y in zip(users["x"].to_pylist(), users["y"].to_pylist(), strict=True)
    )
    assert len(bench.execute("NearMe").bes) == expected


def test_the_time_between_commits_is_that_of_each_slice(tmp_path: Path) -> None:
    commits = [(1.0, "slice-0"), (10.0, "slice-0 slice-1"), (10.5, "slice-1"), (12.0, "slice-0")]
    for number, (at, markers) in enumerate(commits):
        actions: list[dict[str, object]] = [{"commitInfo": {"timestamp": at * 1000}}]
        actions += [{"txn": {"appId": name, "version": number}} for name in markers.split()]
        (tmp_path / f"{number:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    assert intervals(tmp_path, since=5.0) == [0.5, 2.0]
