"""Bodies of channels of every kind there is, with the values that subscriptions give to their parameters."""

from __future__ import annotations

VALUES: dict[str, list[str | int | float]] = {
    "event": ["fire", "flood", "storm", "earthquake"],
    "least": [1, 2, 3, 4, 99],
    "user": ["u0", "u3", "u7", "nobody"],
    "date": ["2026-01-01", "2026-01-02", "2030-01-01"],
    "sym": ["A", "B", "C", "Z"],
    "threshold": [0.0, 1.25, 2.5, 100.0],
    "radius": [0.0, 5.0, 10.0, 12.5, 1000.0, -5.0],
    "metres": [0, 5, 10, 50_000, -5],
    "px": [0.0, 5.0, -30.0],
    "py": [0.0, 2.5, 10.0],
    "place": ["Hall 1", "Hall 4", "nowhere"],
    "town": ["Oulu", "oulu", "Turku"],
}

ZOO = {
    "equality": ("event STRING", "SELECT r.* FROM Reports r WHERE r.etype = event AND is_new(r)"),
    "equality, the other way round": ("event STRING", "SELECT id FROM Reports WHERE event = etype"),
    "no parameter": ("", "SELECT r.id, r.severity FROM Reports r WHERE is_new(r)"),
    "range": (
        "sym STRING, threshold DOUBLE",
        "SELECT q.symbol, q.price, q.volume FROM Quotes q WHERE q.symbol = sym AND q.price > threshold AND is_new(q)",
    ),
    "between": (
        "least INT, event STRING",
        "SELECT r.id FROM Reports r WHERE r.severity BETWEEN least AND least + 1 AND r.etype <> event AND is_new(r)",
    ),
    "null-safe equality": (
        "event STRING",
        "SELECT r.id, r.etype <=> event AS same FROM Reports r WHERE NOT (r.etype <=> event)",
    ),
    "or at the top": (
        "event STRING, least INT",
        "SELECT r.id FROM Reports r WHERE r.etype = event OR r.severity >= least",
    ),
    "parentheses": (
        "event STRING, least INT",
        "SELECT r.id FROM Reports r WHERE ((r.etype = event) AND ((is_new(r)) AND (r.severity > least OR r.x "
        "IS NULL)))",
    ),
    "in a list": (
        "event STRING",
        "SELECT r.id FROM Reports r WHERE r.etype IN (event, 'storm') AND r.severity IN (1, 2)",
    ),
    "like": ("event STRING", "SELECT r.id, r.etype LIKE concat(event, '%') AS l FROM Reports r WHERE is_new(r)"),
    "parameters in the select list": (
        "event STRING, least INT",
        "SELECT event AS wanted, least + 1 AS n, r.id FROM Reports r WHERE r.etype = event AND r.severity >= least",
    ),
    "only parameters in the select list": (
        "event STRING",
        "SELECT event AS wanted, r.id FROM Reports r WHERE is_new(r)",
    ),
    "case": (
        "event STRING, least INT",
        "SELECT r.id, CASE WHEN r.etype = event AND r.severity > least THEN 'both' WHEN r.etype = event THEN "
        "event ELSE 'no' END AS c FROM Reports r WHERE CASE WHEN r.severity > least THEN true ELSE r.etype = "
        "event END",
    ),
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

# What cannot run for all subscriptions as for one, and a word of the reason given.
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
