"""The one statement that an execution runs: a channel's body for all its subscriptions, a payload for each.

Relations are named as the rewrite names them (datasets by their names, ``__new_…``, ``__subs``) and bound to the views
of one execution by common table expressions, so that executions can share a Spark session.
"""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.data.sql.rewrite import BE, OUTER, SUBSCRIPTIONS
from tocsin.data.sql.scopes import Body, Span

RESULT_COLUMNS = (BE, "payload", "rows", "bytes")
_JSON = "map('ignoreNullFields', 'false')"


def matches(body: str) -> str:
    """What the body gives for each subscription, row by row."""
    return f"SELECT {OUTER}.{BE}, q.* FROM {SUBSCRIPTIONS} {OUTER}, LATERAL (\n{body}\n) q"


def payloads(body: str, order: str | None = None) -> str:
    """What the body gives for each subscription, as one JSON array in the order of ``order``, if there is one."""
    position = f", row_number() OVER (PARTITION BY {OUTER}.{BE} ORDER BY {order}) AS __n" if order else ""
    found = (
        f"SELECT {OUTER}.{BE}, struct(q.*) AS __row{position} "
        f"FROM {SUBSCRIPTIONS} {OUTER}, LATERAL (\n{body}\n) q"
    )
    gathered = "transform(array_sort(collect_list(struct(__n, __row))), e -> e.__row)" if order else "collect_list(__row)"
    arrays = f"SELECT {BE}, to_json({gathered}, {_JSON}) AS payload, count(1) AS rows FROM (\n{found}\n) GROUP BY {BE}"
    return f"SELECT {BE}, payload, CAST(rows AS INT) AS rows, CAST(octet_length(payload) AS INT) AS bytes FROM ({arrays})"


def bound(statement: str, views: Mapping[str, str]) -> str:
    """The statement with each relation bound to a view of this moment."""
    if not views:
        return statement
    relations = ",\n".join(f"{name} AS (SELECT * FROM {view})" for name, view in views.items())
    return f"WITH {relations}\n{statement}"


def orders(text: str) -> list[str]:
    """How the rows of a body may be ordered from outside, likeliest first: its ORDER BY as it is, or unqualified."""
    body = Body(text)
    level = [i for i in body.level(Span(0, len(body.tokens))) if body.words[i] == "ORDER BY"]
    if not level:
        return []
    ends = {"LIMIT", "OFFSET"}
    last = next((i for i in body.level(Span(level[-1] + 1, len(body.tokens))) if body.words[i] in ends), len(body.tokens))
    clause = Span(level[-1] + 1, last)
    qualifiers = {i for i in clause if i + 1 < last and body.words[i + 1] == "."} if clause else set()
    skipped = qualifiers | {i + 1 for i in qualifiers}
    return [body.slice(clause), " ".join(body.slice(Span(i, i + 1)) for i in clause if i not in skipped)]
