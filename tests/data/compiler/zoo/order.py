"""Bodies whose rows come in an order, or only the first of them."""

from __future__ import annotations

ORDERED = {
    "order by": (
        "event STRING",
        "SELECT r.id, r.severity FROM Reports r WHERE r.etype = event ORDER BY r.severity DESC, id",
    ),
    "order by and limit": (
        "event STRING",
        "SELECT r.id, r.severity FROM Reports r WHERE r.etype = event ORDER BY r.severity DESC NULLS LAST, "
        "r.id LIMIT 3",
    ),
    "order by what is not selected": (
        "event STRING, px DOUBLE",
        "SELECT r.id FROM Reports r WHERE r.etype = event ORDER BY abs(r.x - px) DESC, r.severity, r.id LIMIT "
        "4 OFFSET 1",
    ),
    "order by a position": (
        "least INT",
        "SELECT r.severity, r.id FROM Reports r WHERE r.severity > least ORDER BY 1 DESC, 2",
    ),
    "order by an alias that hides a column": (
        "event STRING",
        "SELECT r.id AS severity, r.severity AS id FROM Reports r WHERE r.etype = event ORDER BY severity",
    ),
    "order by a column that an alias hides": (
        "event STRING",
        "SELECT r.id AS severity, r.severity AS id FROM Reports r WHERE r.etype = event ORDER BY r.severity, r.id",
    ),
    "order by an aggregate": (
        "least INT",
        "SELECT r.etype FROM Reports r WHERE r.severity >= least GROUP BY r.etype ORDER BY count(*) DESC, "
        "r.etype LIMIT 2",
    ),
    "order by with distinct": (
        "event STRING",
        "SELECT DISTINCT r.severity, r.x FROM Reports r WHERE r.etype = event ORDER BY r.severity DESC, x",
    ),
    "limit for each in a subquery": (
        "event STRING, least INT",
        "SELECT t.id, s.name FROM (SELECT * FROM Reports WHERE etype = event ORDER BY severity DESC, id LIMIT "
        "5) t LEFT JOIN Shelters s ON s.x = t.x WHERE t.severity >= least",
    ),
    "limit in a branch": (
        "event STRING, least INT",
        "(SELECT r.id FROM Reports r WHERE r.etype = event ORDER BY r.id LIMIT 2) UNION ALL (SELECT r.id FROM "
        "Reports r WHERE r.severity > least ORDER BY r.id DESC LIMIT 1)",
    ),
}
