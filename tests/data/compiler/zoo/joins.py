"""Bodies that join relations, in every way there is."""

from __future__ import annotations

JOINS = {
    "inner join": (
        "user STRING",
        "SELECT r.id, u.userId, u.city FROM Reports r JOIN Users u ON r.x = u.x WHERE u.userId = user AND is_new(r)",
    ),
    "comma join": (
        "user STRING, least INT",
        "SELECT r.id, u.city FROM Reports r, Users u WHERE r.x = u.x AND u.userId = user AND r.severity > least",
    ),
    "using": (
        "user STRING, least INT",
        "SELECT * EXCEPT (r.y, u.y) FROM Reports r JOIN Users u USING (x) WHERE u.userId = user AND r.severity "
        ">= least AND is_new(r)",
    ),
    "natural join": (
        "least INT",
        "SELECT x, y, id, userId FROM Reports r NATURAL JOIN Users u WHERE severity >= least",
    ),
    "left join": (
        "event STRING, least INT",
        "SELECT r.id, s.name, s.capacity FROM Reports r LEFT JOIN Shelters s ON r.x = s.x AND r.severity >= "
        "least WHERE r.etype = event AND is_new(r)",
    ),
    "left join with the parameter only in its condition": (
        "place STRING",
        "SELECT r.id, s.id AS sid FROM Reports r LEFT JOIN Shelters s ON r.x = s.x AND s.name = place WHERE is_new(r)",
    ),
    "anti join": (
        "event STRING, place STRING",
        "SELECT r.id FROM Reports r LEFT ANTI JOIN Shelters s ON r.x = s.x AND s.name = place WHERE r.etype = event",
    ),
    "semi join": (
        "event STRING, place STRING",
        "SELECT r.id FROM Reports r LEFT SEMI JOIN Shelters s ON r.x = s.x AND s.name = place WHERE r.etype = event",
    ),
    "right join": (
        "place STRING",
        "SELECT r.id, s.id AS sid FROM Reports r RIGHT JOIN Shelters s ON r.x = s.x AND r.y = s.y WHERE s.name = place",
    ),
    "full join": (
        "event STRING, place STRING",
        "SELECT r.id, s.id AS sid FROM Reports r FULL JOIN Shelters s ON near(r.x, r.y, s.x, s.y, 5) WHERE "
        "r.etype = event OR s.name = place",
    ),
    "self join": (
        "event STRING",
        "SELECT r.id, o.id AS other FROM Reports r JOIN Reports o ON r.x = o.x AND r.id <> o.id WHERE "
        "is_new(r) AND r.etype = event",
    ),
}
