"""The one statement that an execution runs: a channel's body for all its subscriptions, a payload for each.

Relations are named as the rewrite names them (datasets by their names, ``__new_…``, ``__subs``) and bound to the views
of one execution by common table expressions, so that executions can share a Spark session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tocsin.data.compiler.generated import BE, OUTER, SUBSCRIPTIONS, key, quote_name
from tocsin.data.compiler.order import Key

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
# What a session must be set to when it runs these statements.
SETTINGS = {
    # Where Spark sees while planning that a relation has no rows, these rules take away what its own rewriting of
    # LATERAL and UNION needs afterwards, and the query fails.
    EXCLUDED_RULES: (
        "org.apache.spark.sql.catalyst.optimizer.PropagateEmptyRelation,"
        "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
    ),
    # A statement is what it says: ${env:NAME} in it would be the server's environment, text.`/path` its files.
    "spark.sql.variable.substitute": "false",
    "spark.sql.runSQLOnFiles": "false",
}
# How rows are written: every column, and times with the microseconds they have, of which Spark by itself writes three
# digits.
_INSTANT, _ZONE = r"yyyy-MM-dd\'T\'HH:mm:ss.SSSSSS", "XXX"
JSON = f"map('ignoreNullFields', 'false', 'timestampFormat', '{_INSTANT}{_ZONE}', 'timestampNTZFormat', '{_INSTANT}')"


def matches(body: str) -> str:
    """What the body gives for each subscription, row by row."""
    return f"SELECT {OUTER}.{BE}, q.* FROM {SUBSCRIPTIONS} {OUTER}, LATERAL (\n{body}\n) q"


def payloads(body: str, columns: Sequence[str], order: str = "") -> str:
    """What the body gives for each subscription: a JSON array of its rows of ``columns``, ordered by ``order``."""
    row = f"struct({', '.join(f'q.{quote_name(column)}' for column in columns)})"
    arrays = _order(body, row, order) if order else _gather(body, row)
    counts = "CAST(rows AS INT) AS rows, CAST(octet_length(payload) AS INT) AS bytes"
    return f"SELECT {BE}, payload, {counts} FROM (\n{arrays}\n)"


def bind_views(statement: str, views: Mapping[str, str]) -> str:
    """The statement with each relation bound to a view of this moment."""
    if not views:
        return statement
    relations = ",\n".join(f"{name} AS (SELECT * FROM {view})" for name, view in views.items())
    return f"WITH {relations}\n{statement}"


def orders(keys: Sequence[Key]) -> str:
    """The ORDER BY of the rows of a body, from outside of it."""
    hidden = iter(range(len(keys)))
    values = [f"q.{quote_name(k.column)}" if k.column is not None else f"q.{key(next(hidden))}" for k in keys]
    return ", ".join(f"{value} {k.direction}".strip() for value, k in zip(values, keys, strict=True))


def _gather(body: str, row: str) -> str:
    found = f"SELECT {OUTER}.{BE}, {row} AS __row FROM {SUBSCRIPTIONS} {OUTER}, LATERAL (\n{body}\n) q"
    payload = f"to_json(collect_list(__row), {JSON})"
    return f"SELECT {BE}, {payload} AS payload, count(1) AS rows FROM (\n{found}\n) GROUP BY {BE}"


def _order(body: str, row: str, order: str) -> str:
    """Rows become text before they are sorted, because not every type can be compared; a position always can."""
    position = f"row_number() OVER (PARTITION BY {OUTER}.{BE} ORDER BY {order})"
    found = (
        f"SELECT {OUTER}.{BE}, {position} AS __n, to_json({row}, {JSON}) AS __row "
        f"FROM {SUBSCRIPTIONS} {OUTER}, LATERAL (\n{body}\n) q"
    )
    rows = "transform(array_sort(collect_list(struct(__n, __row))), __e -> __e.__row)"
    payload = f"concat('[', array_join({rows}, ','), ']')"
    return f"SELECT {BE}, {payload} AS payload, count(1) AS rows FROM (\n{found}\n) GROUP BY {BE}"
