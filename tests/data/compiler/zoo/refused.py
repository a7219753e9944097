"""Bodies that cannot run for all subscriptions as for one, and a word of the reason given."""

from __future__ import annotations

REFUSED = {
    "intersect": (
        "event STRING, place STRING",
        "SELECT r.x FROM Reports r WHERE r.etype = event INTERSECT SELECT s.x FROM Shelters s WHERE s.name = place",
        "write EXISTS",
    ),
    "except": (
        "event STRING, least INT",
        "SELECT r.x FROM Reports r WHERE r.etype = event EXCEPT SELECT o.x FROM Reports o WHERE o.severity > least",
        "NOT EXISTS",
    ),
    "the optional side of a left join": (
        "least INT",
        "SELECT s.id, t.n FROM Shelters s LEFT JOIN (SELECT r.x, count(*) AS n FROM Reports r "
        "WHERE r.severity >= least GROUP BY r.x) t ON t.x = s.x",
        "optional side of an outer join",
    ),
    "the optional side of a right join": (
        "event STRING",
        "SELECT r.id, s.id AS sid FROM (SELECT * FROM Reports WHERE etype = event) r "
        "RIGHT JOIN Shelters s ON near(r.x, r.y, s.x, s.y, 10)",
        "optional side of an outer join",
    ),
    "a side of a full join": (
        "event STRING",
        "SELECT r.id, s.id AS sid FROM (SELECT * FROM Reports WHERE etype = event) r FULL JOIN Shelters s ON r.x = s.x",
        "optional side of an outer join",
    ),
    "rollup": (
        "event STRING",
        "SELECT r.severity, count(*) AS n FROM Reports r WHERE r.etype = event GROUP BY ROLLUP (r.severity)",
        "one SELECT for each grouping",
    ),
    "grouping sets": (
        "least INT",
        "SELECT r.etype, count(*) AS n FROM Reports r WHERE r.severity >= least GROUP BY GROUPING SETS ((r.etype), ())",
        "one SELECT for each grouping",
    ),
    "a parameter beside an aggregate of all rows": (
        "event STRING",
        "SELECT event AS e, count(*) AS n FROM Reports r WHERE r.etype = event",
        "aggregate in a subquery in FROM",
    ),
    "two subqueries deep": (
        "town STRING",
        "SELECT r.id FROM Reports r WHERE EXISTS (SELECT 1 FROM Shelters s WHERE s.x = r.x AND "
        "EXISTS (SELECT 1 FROM Users u WHERE u.x = s.x AND u.city = town))",
        "more than one query deep",
    ),
    "a relation of a subquery": (
        "place STRING",
        "SELECT r.id FROM Reports r WHERE EXISTS (SELECT 1 FROM (SELECT * FROM Shelters WHERE name = place) s "
        "WHERE s.x = r.x)",
        "more than one query deep",
    ),
    # Spark would plan this one, and cut the rows of all subscriptions to the same event together.
    "limit below another use of the outer row": (
        "event STRING, place STRING",
        "SELECT t.id, s.id AS sid FROM (SELECT * FROM Reports WHERE etype = event ORDER BY id LIMIT 2) t "
        "RIGHT JOIN Shelters s ON s.x = t.x WHERE s.name = place",
        "row_number()",
    ),
    "limit in a subquery beside a parameter": (
        "event STRING",
        "SELECT r.id, (SELECT concat(t.id, event) FROM (SELECT o.id FROM Reports o WHERE o.x = r.x "
        "ORDER BY o.id LIMIT 1) t) AS o FROM Reports r",
        "write a join instead",
    ),
    "limit by a parameter": ("least INT", "SELECT r.id FROM Reports r ORDER BY r.id LIMIT least", "row_number()"),
}
