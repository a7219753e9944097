"""What an execution costs as subscriptions grow, against one query for each; ``near`` against a nested loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from tocsin.bench.data.bench import DataBench, locations, repeat, reports
from tocsin.bench.report import Figure, median
from tocsin.data.channels.frames import SubscriptionFrames
from tocsin.data.compiler import grid, query
from tocsin.data.compiler.rewrite import SUBSCRIPTIONS, Rewriter, Way, fresh
from tocsin.data.ids import NONE
from tocsin.data.lake import frames

RECORDS = 10_000
_TURNS = 5
_WARM = 3
_SAMPLE = 40


def executions(
    spark: SparkSession,
    directory: Path,
    sizes: list[int],
    say: Callable[[str], None],
    *,
    sample: int = _SAMPLE,
    turns: int = _TURNS,
    warm: int = _WARM,
) -> list[Figure]:
    """One execution with ever more subscriptions; each of 10,000 new records is wanted by one of them."""
    group = f"execution, {RECORDS:,} new records of 500 B"
    figures: list[Figure] = []
    first = 0.0
    for size in sizes:
        bench = DataBench(spark, directory / str(size))
        say(f"attaching {size:,} subscriptions")
        bench.attach("OfType", [{"event": f"e{i}"} for i in range(size)])
        seconds = _cost(bench, size, turns, warm, say)
        first = first or seconds
        last = size == sizes[-1]
        figures.append(
            Figure(
                group,
                f"{size:,} subscriptions",
                seconds,
                "s",
                seconds / first,
                f"{sizes[0]:,}",
                "1,000,000 at most 2×" if last else "",
                seconds / first <= 2 if last else None,
            )
        )
        if size == sizes[0]:
            figures.append(_per_subscription(bench, size, seconds, group, sample, say))
        if last:
            figures += _attach_more(bench, size, seconds, group, say)
        bench.store.close()
    return figures


def _cost(bench: DataBench, kinds: int, turns: int, warm: int, say: Callable[[str], None]) -> float:
    """The median time of an execution, after some to warm up; each sees 10,000 records that are new to it."""
    bench.skip("OfType")
    say(f"executing for {kinds:,} subscriptions")

    def turn(number: int) -> float:
        bench.tables["Reports"].append(reports(RECORDS, kinds, number), {})
        return bench.execute("OfType").seconds

    return median([turn(number) for number in range(warm + turns)][warm:])


def _per_subscription(
    bench: DataBench, size: int, together: float, group: str, sample: int, say: Callable[[str], None]
) -> Figure:
    """The same answers by one query per subscription, measured on a sample of them."""
    say("one query per subscription, for comparison")
    table = bench.tables["Reports"]
    since = table.version - 1
    frames.fresh(bench.spark, table, table.snapshot, since).createOrReplaceTempView(fresh("Reports"))
    rewriter = Rewriter(bench.channels["OfType"], bench.datasets)

    def one(number: int) -> None:
        statement = rewriter.for_one([f"'e{number}'"]).sql
        bench.spark.sql(f"SELECT to_json(collect_list(struct(*))) FROM ({statement})").collect()

    each = median(repeat(sample + 1, one)[1:])
    ratio = each * size / together
    target = "at least 1,000×"
    return Figure(
        group, "one query each, in all", each * size, "s", ratio, f"one execution for {size:,}", target, ratio >= 1000
    )


def _attach_more(bench: DataBench, size: int, before: float, group: str, say: Callable[[str], None]) -> list[Figure]:
    """A thousand more subscriptions, and the execution right after."""
    say("attaching 1,000 more")
    base = bench.subscriptions.segments("OfType").base
    began = time.perf_counter()
    bench.attach("OfType", [{"event": f"more{i}"} for i in range(1000)])
    attached = time.perf_counter() - began
    bench.tables["Reports"].append(reports(RECORDS, size, 99), {})
    after = bench.execute("OfType").seconds
    kept = bench.subscriptions.segments("OfType").base == base
    return [
        Figure(group, f"attach 1,000 to {size:,}", attached, "s"),
        Figure(
            group, "the execution right after", after, "s", after / before, "before", "does not reload the base", kept
        ),
    ]


def near(
    spark: SparkSession,
    directory: Path,
    say: Callable[[str], None],
    users: int = 100_000,
    *,
    turns: int = _TURNS,
    warm: int = _WARM,
) -> list[Figure]:
    """Reports near users: the grid against a nested loop of the same condition."""
    group = f"near, {RECORDS:,} new reports × {users:,} users, 500 m"
    bench = DataBench(spark, directory / "near")
    bench.tables["Locations"].append(locations(users, 1), {})
    say(f"attaching {users:,} subscriptions")
    bench.attach("NearMe", [{"user": f"u{i}"} for i in range(users)])
    bench.skip("NearMe")
    found: list[int] = []

    def turn(number: int) -> float:
        bench.tables["Reports"].append(reports(RECORDS, 8, number), {})
        execution = bench.execute("NearMe")
        found.append(len(execution.bes))
        return execution.seconds

    say("executing on the grid")
    gridded = median([turn(number) for number in range(warm + turns)][warm:])
    say("the join alone, on the grid and by a nested loop")
    joined, looped = _join(bench), _nested_loop(bench)
    bench.store.close()
    return [
        Figure(group, f"one execution, {found[-1]:,} subscriptions have news", gridded, "s"),
        Figure(group, "the join alone, on the grid", joined, "s"),
        Figure(group, "the join alone, as a nested loop", looped, "s", looped / joined, "on the grid"),
    ]


def _join(bench: DataBench) -> float:
    """The matches counted, for all subscriptions at once, without making their payloads."""
    table, users = bench.tables["Reports"], bench.tables["Locations"]
    subscribed = SubscriptionFrames(bench.spark).view("NearMe", bench.subscriptions.segments("NearMe"), NONE)
    frames.fresh(bench.spark, table, table.snapshot, table.version - 1).createOrReplaceTempView("bench_reports")
    frames.whole(bench.spark, users, users.snapshot).createOrReplaceTempView("bench_users")
    views = {SUBSCRIPTIONS: subscribed, fresh("Reports"): "bench_reports", "Locations": "bench_users"}
    body = Rewriter(bench.channels["NearMe"], bench.datasets).for_all(Way.ROW).sql
    statement = query.bind_views(f"SELECT count(*) FROM ({query.matches(body)})", views)

    def turn(_: int) -> None:
        bench.spark.sql(statement).collect()

    return median(repeat(3, turn))


def _nested_loop(bench: DataBench) -> float:
    table, users = bench.tables["Reports"], bench.tables["Locations"]
    frames.fresh(bench.spark, table, table.snapshot, table.version - 1).createOrReplaceTempView("bench_reports")
    frames.whole(bench.spark, users, users.snapshot).createOrReplaceTempView("bench_users")
    condition = grid.condition("r.x", "r.y", "u.x", "u.y", "500")
    began = time.perf_counter()
    bench.spark.sql(f"SELECT count(*) FROM bench_reports r JOIN bench_users u ON {condition}").collect()
    return time.perf_counter() - began
