"""Bodies with subqueries in their conditions and select lists."""

from __future__ import annotations

SUBQUERIES = {
    "scalar subquery": (
        "event STRING",
        "SELECT r.id, (SELECT max(s.capacity) FROM Shelters s WHERE s.x = r.x) AS room FROM Reports r WHERE "
        "r.etype = event",
    ),
    "scalar subquery with the parameter": (
        "event STRING, place STRING",
        "SELECT r.id, (SELECT count(*) FROM Shelters s WHERE s.x = r.x AND s.name = place) AS n FROM Reports r "
        "WHERE r.etype = event AND is_new(r)",
    ),
    "subquery in the select list and in case": (
        "place STRING, least INT",
        "SELECT r.id, CASE WHEN r.severity > least THEN (SELECT min(s.id) FROM Shelters s WHERE s.name = "
        "place) ELSE place END AS c FROM Reports r WHERE is_new(r)",
    ),
    "above the average": (
        "event STRING",
        "SELECT r.id FROM Reports r WHERE r.severity > (SELECT avg(o.severity) FROM Reports o WHERE o.etype = event)",
    ),
    "subquery in having": (
        "place STRING",
        "SELECT r.etype, count(*) AS n FROM Reports r GROUP BY r.etype HAVING count(*) > (SELECT count(*) FROM "
        "Shelters s WHERE s.name = place)",
    ),
    "exists": (
        "event STRING",
        "SELECT r.id FROM Reports r WHERE r.etype = event AND EXISTS (SELECT 1 FROM Shelters s WHERE s.x = r.x)",
    ),
    "exists with the parameter": (
        "place STRING",
        "SELECT r.id FROM Reports r WHERE is_new(r) AND EXISTS (SELECT 1 FROM Shelters s WHERE s.x = r.x AND "
        "s.name = place)",
    ),
    "exists under or": (
        "place STRING, least INT",
        "SELECT r.id FROM Reports r WHERE r.severity >= least OR EXISTS (SELECT 1 FROM Shelters s WHERE s.x = "
        "r.x AND s.name = place)",
    ),
    "not exists with the parameter": (
        "least INT",
        "SELECT s.id FROM Shelters s WHERE NOT EXISTS (SELECT * FROM Reports r WHERE r.x = s.x AND r.severity "
        ">= least)",
    ),
    "in a subquery": (
        "event STRING",
        "SELECT s.id FROM Shelters s WHERE s.x IN (SELECT r.x FROM Reports r WHERE r.etype = event AND is_new(r))",
    ),
    "in under or": (
        "event STRING, place STRING",
        "SELECT r.id FROM Reports r WHERE r.etype = event OR r.x IN (SELECT s.x FROM Shelters s WHERE s.name = place)",
    ),
    "not in a subquery with nulls": (
        "event STRING",
        "SELECT s.id FROM Shelters s WHERE s.x NOT IN (SELECT r.x FROM Reports r WHERE r.etype = event)",
    ),
    "not in a subquery": (
        "least INT",
        "SELECT s.id FROM Shelters s WHERE s.x NOT IN (SELECT r.x FROM Reports r WHERE r.x IS NOT NULL AND "
        "r.severity = least)",
    ),
}
