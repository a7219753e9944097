"""Bodies made of others: unions, common table expressions and derived tables."""

from __future__ import annotations

TABLES = {
    "union all": (
        "event STRING, place STRING",
        "SELECT r.id, r.x FROM Reports r WHERE r.etype = event AND is_new(r) UNION ALL SELECT s.id, s.x FROM "
        "Shelters s WHERE s.name = place",
    ),
    "union": (
        "event STRING, least INT",
        "SELECT r.severity AS n FROM Reports r WHERE r.etype = event UNION SELECT least UNION ALL SELECT 7 ORDER BY n",
    ),
    "union in a subquery": (
        "event STRING, place STRING",
        "SELECT t.x, count(*) AS n FROM (SELECT r.x FROM Reports r WHERE r.etype = event UNION ALL SELECT s.x "
        "FROM Shelters s WHERE s.name >= place) t GROUP BY t.x HAVING count(*) > 1",
    ),
    "union with a branch without parameters": (
        "event STRING",
        "(SELECT r.id FROM Reports r WHERE r.etype = event) UNION ALL (SELECT s.id FROM Shelters s WHERE "
        "s.capacity > 10)",
    ),
    "common table expression": (
        "event STRING, least INT",
        "WITH wanted AS (SELECT * FROM Reports r WHERE r.etype = event AND is_new(r)), grave AS (SELECT * FROM "
        "wanted w WHERE w.severity >= least) SELECT g.id, g.severity FROM grave g",
    ),
    "common table expression used twice": (
        "event STRING",
        "WITH wanted AS (SELECT * FROM Reports r WHERE r.etype = event) SELECT a.id, b.id AS other FROM wanted "
        "a JOIN wanted b ON a.x = b.x AND a.id < b.id",
    ),
    "common table expression with an aggregate": (
        "event STRING, least INT",
        "WITH n AS (SELECT count(*) AS c FROM Reports r WHERE r.etype = event AND r.severity > least) SELECT "
        "s.id, n.c FROM Shelters s CROSS JOIN n WHERE n.c > s.capacity / 10 OR n.c = 0",
    ),
    "derived table": (
        "event STRING, least INT",
        "SELECT t.etype, t.n FROM (SELECT r.etype, count(*) AS n FROM Reports r WHERE is_new(r) GROUP BY "
        "r.etype) t WHERE t.etype = event AND t.n >= least",
    ),
}
