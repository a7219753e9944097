"""Bodies with aggregates, groups, distinct rows and windows."""

from __future__ import annotations

GROUPS = {
    "group by": (
        "least INT",
        "SELECT r.etype, count(*) AS n, max(r.severity) AS worst FROM Reports r WHERE r.severity >= least "
        "GROUP BY r.etype",
    ),
    "group by and parameters above": (
        "sym STRING, threshold DOUBLE",
        "SELECT q.traded, sym AS wanted, sum(q.price) + threshold AS total FROM Quotes q WHERE q.symbol = sym "
        "GROUP BY q.traded HAVING sum(q.price) > threshold",
    ),
    "group by a parameter": (
        "event STRING, least INT",
        "SELECT r.etype = event AS same, count(*) AS n FROM Reports r WHERE r.severity >= least GROUP BY "
        "r.etype = event",
    ),
    "group by all": (
        "sym STRING, threshold DOUBLE",
        "SELECT q.traded, sym AS s, count(*) AS n FROM Quotes q WHERE q.price > threshold GROUP BY ALL",
    ),
    "group by a position": (
        "sym STRING",
        "SELECT q.traded, q.symbol <=> sym AS own, count(*) AS n FROM Quotes q GROUP BY 1, 2",
    ),
    "an aggregate of nothing": (
        "event STRING",
        "SELECT count(*) AS n, max(r.x) AS x FROM Reports r WHERE r.etype = event",
    ),
    "an aggregate of nothing, by range": (
        "least INT",
        "SELECT count(*) AS n, sum(r.severity) AS s FROM Reports r WHERE r.severity > least AND is_new(r)",
    ),
    "an aggregate of nothing beside the parameter": (
        "event STRING, least INT",
        "SELECT event AS e, t.n + least AS n FROM (SELECT count(*) AS n FROM Reports r WHERE r.etype = event "
        "AND r.severity > least) t",
    ),
    "having without group by": (
        "event STRING, least INT",
        "SELECT count(*) AS n FROM Reports r WHERE r.etype = event HAVING count(*) < 9 - least",
    ),
    "filtered aggregates": (
        "event STRING, least INT",
        "SELECT count(*) FILTER (WHERE r.etype = event) AS a, count_if(r.severity > least) AS b FROM Reports r",
    ),
    "distinct": ("event STRING", "SELECT DISTINCT r.severity, r.etype FROM Reports r WHERE r.etype = event"),
    "distinct with a parameter": (
        "least INT",
        "SELECT DISTINCT r.etype, r.severity > least AS grave, least AS l FROM Reports r WHERE r.severity IS NOT NULL",
    ),
    "count distinct": (
        "sym STRING, threshold DOUBLE",
        "SELECT count(DISTINCT q.price) AS n, count(DISTINCT q.traded, q.volume) AS m FROM Quotes q WHERE "
        "q.symbol = sym AND q.price >= threshold",
    ),
    "window": (
        "event STRING",
        "SELECT r.id, rank() OVER (PARTITION BY r.etype ORDER BY r.severity DESC) AS place FROM Reports r "
        "WHERE r.etype = event",
    ),
    "window over all rows": (
        "least INT",
        "SELECT r.id, count(*) OVER () AS n, sum(r.severity) OVER (ORDER BY r.id) AS s FROM Reports r WHERE "
        "r.severity >= least",
    ),
    "window ordered by a parameter": (
        "px DOUBLE",
        "SELECT r.id, row_number() OVER (PARTITION BY r.etype ORDER BY abs(r.x - px), r.id) AS k FROM Reports "
        "r WHERE is_new(r)",
    ),
    "the best of each": (
        "least INT",
        "SELECT t.id, t.etype FROM (SELECT r.*, row_number() OVER (PARTITION BY r.etype ORDER BY r.severity "
        "DESC, r.id) AS k FROM Reports r WHERE r.x IS NOT NULL) t WHERE t.k <= least",
    ),
    "the best of each, filtered first": (
        "least INT, threshold DOUBLE",
        "SELECT t.id FROM (SELECT r.id, dense_rank() OVER (PARTITION BY r.etype ORDER BY r.severity DESC) AS k "
        "FROM Reports r WHERE r.x > threshold) t WHERE t.k <= least",
    ),
    "qualify": (
        "event STRING, least INT",
        "SELECT r.id, r.severity FROM Reports r WHERE r.etype = event QUALIFY row_number() OVER (ORDER BY "
        "r.severity DESC, r.id) <= least",
    ),
}
