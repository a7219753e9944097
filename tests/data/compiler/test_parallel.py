"""Which bodies are data-parallel. That what is said of them is true is tested with the zoo."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from tests.data.compiler.conftest import Channels
from tocsin.data.compiler.check import check
from tocsin.schema.definitions import Dataset

pytestmark = pytest.mark.spark

PARALLEL = {
    "a filter": "SELECT r.* FROM Reports r WHERE r.etype = event AND is_new(r)",
    "a join with what is there": (
        "SELECT r.id FROM Reports r JOIN Users u ON near(r.x, r.y, u.x, u.y, 5) WHERE u.city = event AND is_new(r)"
    ),
    "what may be missing on the other side": (
        "SELECT r.id, s.name FROM Reports r LEFT JOIN Shelters s ON s.id = r.id WHERE is_new(r) AND r.etype = event"
    ),
    "the new side on the right": (
        "SELECT n.id FROM Shelters s RIGHT JOIN (SELECT r.id, r.etype FROM Reports r WHERE is_new(r)) n ON s.id = n.id "
        "WHERE n.etype = event"
    ),
    "a condition on others": (
        "SELECT r.id FROM Reports r "
        "WHERE is_new(r) AND r.etype = event AND EXISTS (SELECT 1 FROM Shelters s WHERE s.id = r.id)"
    ),
    "a number of others": (
        "SELECT r.id, (SELECT count(*) FROM Shelters s WHERE s.x = r.x) AS n FROM Reports r "
        "WHERE is_new(r) AND r.etype = event"
    ),
    "rows made of one": (
        "SELECT q.symbol, t FROM Quotes q LATERAL VIEW explode(q.tags) e AS t WHERE q.symbol = event AND is_new(q)"
    ),
    "a query in FROM": (
        "SELECT n.id FROM (SELECT r.id, r.etype FROM Reports r WHERE is_new(r)) n WHERE n.etype = event"
    ),
}
NOT_PARALLEL = {
    "an aggregate over what is new": (
        "SELECT count(*) AS n FROM Reports r WHERE r.etype = event AND is_new(r) HAVING count(*) > 0"
    ),
    "groups of what is new": (
        "SELECT r.severity, max(r.x) AS x FROM Reports r WHERE r.etype = event AND is_new(r) GROUP BY r.severity"
    ),
    "distinct rows": "SELECT DISTINCT r.severity FROM Reports r WHERE r.etype = event AND is_new(r)",
    "two that are new": (
        "SELECT r.id FROM Reports r JOIN Quotes q ON q.symbol = r.etype "
        "WHERE is_new(r) AND is_new(q) AND r.etype = event"
    ),
    "new ones among themselves": (
        "SELECT a.id FROM Reports a JOIN Reports b ON a.x = b.x WHERE is_new(a) AND is_new(b) AND a.etype = event"
    ),
    "new ones beside all": (
        "SELECT a.id FROM Reports a JOIN Reports b ON a.x = b.x WHERE is_new(a) AND a.etype = event AND b.id <> a.id"
    ),
    "a condition on what is new": (
        "SELECT s.id FROM Shelters s WHERE s.name = event AND EXISTS (SELECT 1 FROM Reports r "
        "WHERE r.x = s.x AND is_new(r))"
    ),
    "an order": "SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r) ORDER BY r.severity",
    "the first": "SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r) ORDER BY r.severity, r.id LIMIT 1",
    "a window": (
        "SELECT r.id, count(*) OVER (PARTITION BY r.etype) AS n FROM Reports r WHERE r.etype = event AND is_new(r)"
    ),
    "the new side as what may be missing": (
        "SELECT s.id, n.id AS report FROM Shelters s LEFT JOIN (SELECT r.id, r.x FROM Reports r "
        "WHERE is_new(r)) n ON n.x = s.x "
        "WHERE s.name = event"
    ),
    "new ones and others": (
        "SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r) UNION ALL SELECT s.id FROM Shelters s"
    ),
    "nothing new": "SELECT s.id FROM Shelters s WHERE s.name = event",
}


@pytest.mark.parametrize("name", PARALLEL)
def test_a_body_that_looks_at_each_new_record_by_itself_is_parallel(
    name: str, session: SparkSession, datasets: Mapping[str, Dataset], channel: Channels
) -> None:
    assert check(session, channel("event STRING", PARALLEL[name]), datasets).parallel


@pytest.mark.parametrize("name", NOT_PARALLEL)
def test_a_body_that_looks_at_several_at_once_is_not(
    name: str, session: SparkSession, datasets: Mapping[str, Dataset], channel: Channels
) -> None:
    assert not check(session, channel("event STRING", NOT_PARALLEL[name]), datasets).parallel
