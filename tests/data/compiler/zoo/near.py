"""Bodies that ask what is near."""

from __future__ import annotations

NEAR = {
    "near a user": (
        "user STRING",
        "SELECT r.id, r.x, u.x AS ux FROM Reports r JOIN Users u ON near(r.x, r.y, u.x, u.y, 10) WHERE "
        "u.userId = user AND is_new(r)",
    ),
    "near a user within a distance": (
        "user STRING, metres INT",
        "SELECT r.id FROM Reports r, Users u WHERE u.userId = user AND near(u.x, u.y, r.x, r.y, metres) AND is_new(r)",
    ),
    "near a user within the user's reach": (
        "user STRING",
        "SELECT r.id, u.reach FROM Reports r JOIN Users u ON near(r.x, r.y, u.x, u.y, u.reach) AND u.userId = user",
    ),
    "near a place": (
        "px DOUBLE, py DOUBLE, radius DOUBLE",
        "SELECT r.id FROM Reports r WHERE near(r.x, r.y, px, py, radius) AND is_new(r)",
    ),
    "near a place within a fixed distance": (
        "px DOUBLE, py DOUBLE",
        "SELECT * FROM Reports WHERE near(px, py, x, y, 12.5) AND is_new(Reports)",
    ),
    "near each other, whoever asks": (
        "least INT",
        "SELECT r.id, s.id AS sid FROM Reports r JOIN Shelters s ON near(r.x, r.y, s.x, s.y, 5) WHERE "
        "r.severity >= least",
    ),
    "near with arrays of enriched records": (
        "event STRING, user STRING",
        "SELECT r.id, sort_array(collect_list(struct(s.name, s.x)) FILTER (WHERE s.id IS NOT NULL)) AS "
        "shelters FROM Reports r JOIN Users u ON near(r.x, r.y, u.x, u.y, 50) LEFT JOIN Shelters s ON "
        "near(r.x, r.y, s.x, s.y, 10) WHERE u.userId = user AND r.etype = event GROUP BY r.id",
    ),
    "left join near with a parameter": (
        "event STRING, radius DOUBLE",
        "SELECT r.*, s.id AS sid FROM Reports r LEFT JOIN Shelters s ON near(r.x, r.y, s.x, s.y, radius) WHERE "
        "r.etype = event AND is_new(r)",
    ),
    "semi join near": (
        "radius DOUBLE",
        "SELECT r.id FROM Reports r LEFT SEMI JOIN Shelters s ON near(r.x, r.y, s.x, s.y, radius) WHERE is_new(r)",
    ),
    "anti join near": (
        "event STRING",
        "SELECT r.id FROM Reports r LEFT ANTI JOIN Shelters s ON near(s.x, s.y, r.x, r.y, 10) WHERE r.etype = event",
    ),
    "exists near": (
        "event STRING",
        "SELECT r.id FROM Reports r WHERE r.etype = event AND EXISTS (SELECT 1 FROM Shelters s WHERE near(s.x, "
        "s.y, r.x, r.y, 10) AND s.capacity > 10)",
    ),
    "not exists near within a parameter": (
        "event STRING, radius DOUBLE",
        "SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r) AND NOT EXISTS (SELECT 1 FROM Shelters "
        "s WHERE near(s.x, s.y, r.x, r.y, radius))",
    ),
    "count near": (
        "radius DOUBLE, event STRING",
        "SELECT r.id, (SELECT count(*) FROM Shelters s WHERE near(s.x, s.y, r.x, r.y, radius)) AS n FROM "
        "Reports r WHERE r.etype = event",
    ),
    "near below or": (
        "px DOUBLE, py DOUBLE, event STRING",
        "SELECT r.id FROM Reports r WHERE (near(r.x, r.y, px, py, 10) OR r.etype = event) AND is_new(r)",
    ),
    "not near": ("px DOUBLE, radius DOUBLE", "SELECT r.id FROM Reports r WHERE NOT near(r.x, r.y, px, px, radius)"),
    "near in the select list": (
        "px DOUBLE, py DOUBLE",
        "SELECT r.id, near(r.x, r.y, px, py, 25) AS close FROM Reports r WHERE is_new(r)",
    ),
    "two nears": (
        "px DOUBLE, py DOUBLE, radius DOUBLE",
        "SELECT r.id, s.id AS sid FROM Reports r JOIN Shelters s ON near(r.x, r.y, s.x, s.y, 10) WHERE "
        "near(r.x, r.y, px, py, radius) AND is_new(r)",
    ),
    "two nears of one relation": (
        "user STRING",
        "SELECT r.id, s.id AS sid, u.userId FROM Reports r, Shelters s, Users u WHERE near(r.x, r.y, s.x, s.y, "
        "15) AND near(r.x, r.y, u.x, u.y, abs(u.reach) + 20) AND u.userId = user",
    ),
    "near with unqualified columns and expressions": (
        "metres INT",
        "SELECT id, userId FROM (SELECT id, x AS rx, y AS ry FROM Reports) t, Users u WHERE near(t.rx + 5, "
        "t.ry * 1, u.x, CAST(u.y AS DOUBLE), metres)",
    ),
    "near with groups and parameters above": (
        "user STRING, radius DOUBLE",
        "SELECT user AS who, r.etype, count(*) AS n, radius AS r FROM Reports r JOIN Users u ON near(r.x, r.y, "
        "u.x, u.y, radius) WHERE u.userId = user GROUP BY r.etype",
    ),
}
