"""Bodies with stars, views of arrays and generated rows, and with words that look like something else."""

from __future__ import annotations

ROWS = {
    "star of several relations": (
        "event STRING, least INT",
        "SELECT * FROM (SELECT id, x, etype FROM Reports WHERE severity >= least) r JOIN (SELECT name, "
        "capacity FROM Shelters) s ON s.capacity > r.x WHERE r.etype = event",
    ),
    "star of several relations and near": (
        "event STRING, radius DOUBLE",
        "SELECT * FROM Reports r LEFT ANTI JOIN Shelters s ON near(r.x, r.y, s.x, s.y, radius) WHERE r.etype = event",
    ),
    "stars with exceptions": (
        "user STRING, metres INT",
        "SELECT r.* EXCEPT (x, y), u.* EXCEPT (x) FROM Reports r JOIN Users u ON near(r.x, r.y, u.x, u.y, "
        "metres) WHERE u.userId = user",
    ),
    "star inside a function": (
        "px DOUBLE, py DOUBLE",
        "SELECT to_json(struct(*)) AS j, count(*) OVER () AS n FROM Reports r WHERE near(r.x, r.y, px, py, 10)",
    ),
    "lateral view": (
        "sym STRING, threshold DOUBLE",
        "SELECT q.symbol, tag FROM Quotes q LATERAL VIEW explode(q.tags) t AS tag WHERE q.symbol = sym AND "
        "q.price >= threshold",
    ),
    "outer join with what is new": (
        "town STRING",
        "SELECT u.userId, r.id FROM Users u LEFT JOIN Reports r ON r.x = u.x AND is_new(r) WHERE u.city = town",
    ),
    "values": (
        "least INT",
        "SELECT v.a, least AS l FROM VALUES (1), (2), (NULL) AS v(a) WHERE v.a >= least OR v.a IS NULL",
    ),
    "outer lateral view": (
        "sym STRING",
        "SELECT q.price, tag, sym AS s FROM Quotes q LATERAL VIEW OUTER explode(q.tags) t AS tag WHERE is_new(q)",
    ),
    "lateral subquery": (
        "event STRING",
        "SELECT r.id, t.c FROM Reports r, LATERAL (SELECT count(*) AS c FROM Shelters s WHERE s.x = r.x) t "
        "WHERE r.etype = event",
    ),
    "lateral subquery with the parameter": (
        "event STRING",
        "SELECT s.id, t.c FROM Shelters s, LATERAL (SELECT count(*) AS c FROM Reports r WHERE r.x = s.x AND "
        "r.etype = event) t",
    ),
    "explode in the select list": (
        "sym STRING",
        "SELECT explode(q.tags) AS tag, q.price FROM Quotes q WHERE q.symbol = sym",
    ),
    "higher-order function": (
        "sym STRING",
        "SELECT q.price, filter(q.tags, t -> t <> sym AND t = 'hot') AS tags, exists(q.tags, t -> t = sym) AS "
        "e FROM Quotes q WHERE is_new(q)",
    ),
    "unsorted arrays": (
        "sym STRING, threshold DOUBLE",
        "SELECT q.symbol, collect_list(q.price) AS prices, collect_set(q.volume) AS volumes FROM Quotes q "
        "WHERE q.symbol = sym AND q.price >= threshold GROUP BY q.symbol",
    ),
    "duplicates stay": ("sym STRING", "SELECT q.symbol, q.price FROM Quotes q WHERE q.symbol = sym"),
    "a type as a parameter's name": (
        "date DATE",
        "SELECT q.symbol, q.price, CAST(q.traded AS string) AS d FROM Quotes q WHERE q.traded = date AND "
        "q.traded >= DATE '2026-01-01' AND CAST('2026-02-01' AS DATE) > q.traded",
    ),
    "words in strings, quotes and comments": (
        "event STRING",
        "SELECT r.id, 'event; FROM x WHERE (' AS `select`, /* event ; ) */ r.message\nFROM `Reports` AS `r` -- "
        'WHERE event;\nWHERE r.`etype` = event AND r.message <> "event\' (" AND IS_NEW(R)',
    ),
    "any case": (
        "event STRING",
        "select R.ID, EVENT as e from REPORTS r where r.ETYPE = Event and Is_New(r) order by r.id",
    ),
}
