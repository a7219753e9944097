"""How executions run: as hash joins, whatever parameters are used for, and with ``near`` as an equality of cells."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from tests.data.compiler.conftest import Channels
from tocsin.data.compiler import query
from tocsin.data.compiler.check import check
from tocsin.data.compiler.plans import prepare
from tocsin.data.compiler.rewrite import BE, SUBSCRIPTIONS, Rewriter, parameter
from tocsin.schema.definitions import Dataset

pytestmark = pytest.mark.spark

NO_LOOPS = {
    "equality": ("event STRING", "SELECT r.* FROM Reports r WHERE r.etype = event AND is_new(r)"),
    "equality and range": (
        "sym STRING, threshold DOUBLE",
        "SELECT q.* FROM Quotes q WHERE q.symbol = sym AND q.price > threshold AND is_new(q)",
    ),
    "near a user": (
        "user STRING",
        "SELECT r.id FROM Reports r JOIN Users u ON near(r.x, r.y, u.x, u.y, 500) WHERE u.userId = user AND is_new(r)",
    ),
    "near a user, and grave or of a type": (
        "user STRING, event STRING",
        "SELECT r.id FROM Reports r JOIN Users u ON near(r.x, r.y, u.x, u.y, 500) "
        "WHERE u.userId = user AND (r.etype = event OR r.severity >= 4) AND is_new(r)",
    ),
    "near a user within a distance": (
        "user STRING, radius DOUBLE",
        "SELECT r.id FROM Reports r, Users u WHERE u.userId = user AND near(r.x, r.y, u.x, u.y, radius) AND is_new(r)",
    ),
    "near a user within the user's reach": (
        "user STRING",
        "SELECT r.id FROM Reports r, Users u WHERE u.userId = user AND near(r.x, r.y, u.x, u.y, u.reach) AND is_new(r)",
    ),
    "near a place": (
        "px DOUBLE, py DOUBLE, radius DOUBLE",
        "SELECT r.* FROM Reports r WHERE near(r.x, r.y, px, py, radius) AND is_new(r)",
    ),
    "with the shelters near": (
        "event STRING",
        "SELECT r.id, s.name FROM Reports r LEFT JOIN Shelters s ON near(r.x, r.y, s.x, s.y, 500) "
        "WHERE r.etype = event AND is_new(r)",
    ),
    "where no shelter is near": (
        "event STRING",
        "SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r) "
        "AND NOT EXISTS (SELECT 1 FROM Shelters s WHERE near(s.x, s.y, r.x, r.y, 500))",
    ),
    "counted for each user": (
        "user STRING, radius DOUBLE",
        "SELECT user AS who, r.etype, count(*) AS n FROM Reports r JOIN Users u ON near(r.x, r.y, u.x, u.y, radius) "
        "WHERE u.userId = user GROUP BY r.etype",
    ),
}


@pytest.mark.parametrize("what", NO_LOOPS)
def test_it_runs_without_a_nested_loop(
    what: str, session: SparkSession, views: Mapping[str, str], datasets: Mapping[str, Dataset], channel: Channels
) -> None:
    compiled = check(session, channel(*NO_LOOPS[what]), datasets)
    columns = [f"CAST(id AS {p.type.ddl}) AS {parameter(i)}" for i, p in enumerate(compiled.channel.parameters)]
    session.sql(f"SELECT {', '.join([f'id AS {BE}', *columns])} FROM range(1000)").createOrReplaceTempView("plans_subs")
    plan = prepare(session.sql(query.bind_views(compiled.statement, {**views, SUBSCRIPTIONS: "plans_subs"})))
    assert "NestedLoop" not in plan
    assert "CartesianProduct" not in plan
    assert "HashJoin" in plan


def test_near_is_the_distance_in_the_plane_with_the_border_included(
    session: SparkSession, datasets: Mapping[str, Dataset], channel: Channels
) -> None:
    """Checked against Python, for points and radii of every size, many of them exactly as far apart as asked for."""
    chance = random.Random(7)
    scales = [1e-3, 1.0, 1e6, 1e150]
    points = [(s * chance.randrange(-8, 9), s * chance.randrange(-8, 9)) for s in scales for _ in range(15)]
    radii = [0.0, -1.0, 5.0, 5e-3, 1e6, 4e6, 1e301]
    reports = ", ".join(f"('r{i}', {x!r}D, {y!r}D)" for i, (x, y) in enumerate(points))
    users = ", ".join(
        f"('u{i}', {x!r}D, {y!r}D, {radius!r}D)" for i, ((x, y), radius) in enumerate(itertools.product(points, radii))
    )
    session.sql(f"SELECT * FROM VALUES {reports} AS r(id, x, y)").createOrReplaceTempView("near_reports")
    session.sql(f"SELECT * FROM VALUES {users} AS u(userId, x, y, reach)").createOrReplaceTempView("near_users")
    body = "SELECT r.id, u.userId FROM Reports r JOIN Users u ON near(r.x, r.y, u.x, u.y, u.reach)"
    text = Rewriter(channel("", body), datasets).for_all().sql
    assert "__cell0" in text
    found = session.sql(query.bind_views(text, {"Reports": "near_reports", "Users": "near_users"})).collect()
    expected = {
        (f"r{i}", f"u{j}")
        for i, (x, y) in enumerate(points)
        for j, ((ux, uy), radius) in enumerate(itertools.product(points, radii))
        if radius >= 0 and (x - ux) * (x - ux) + (y - uy) * (y - uy) <= radius * radius
    }
    assert len(found) == len(expected)
    assert {(row["id"], row["userId"]) for row in found} == expected
