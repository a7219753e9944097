"""The order of a body's result: its last ORDER BY, said in terms that hold outside the body as well.

Spark looks a name in ORDER BY up among the columns of the result first, then in FROM. A value that is a column of the
result is ordered by under that name; any other becomes a further, hidden column of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.data.compiler.scopes import Body, Span

_DIRECTIONS = frozenset({"ASC", "DESC", "NULLS", "FIRST", "LAST"})


@dataclass(frozen=True)
class Key:
    """One thing to order by: a column of the result, or else the value of an expression; and the direction."""

    column: str | None
    value: Span
    direction: str


def keys(body: Body, columns: Sequence[str]) -> list[Key]:
    """What the result, of these columns, is ordered by; nothing if it has no order."""
    clauses = body.clauses(body.main.whole if body.main else body.whole)
    items = body.split(clauses["ORDER BY"], {","}) if "ORDER BY" in clauses else []
    return [key for item in items if item for key in _keys(body, item, columns)]


def _keys(body: Body, item: Span, columns: Sequence[str]) -> list[Key]:
    last = item.last
    while last > item.first + 1 and body.words[last - 1] in _DIRECTIONS:
        last -= 1
    value, direction = Span(item.first, last), " ".join(body.words[last : item.last])
    if len(value) == 1 and body.words[value.first] == "ALL":
        return [Key(column, value, direction) for column in columns]
    return [Key(_column(body, value, columns), value, direction)]


def _column(body: Body, value: Span, columns: Sequence[str]) -> str | None:
    """The column of the result that a value is; None if it is another value that can be one more column."""
    known = {column.casefold(): column for column in columns}
    if len(value) == 1 and body.words[value.first].isdecimal():
        number = int(body.words[value.first])
        return columns[number - 1] if 0 < number <= len(columns) else None
    if len(value) == 1 and body.is_name(value.first) and body.names[value.first].casefold() in known:
        return known[body.names[value.first].casefold()]
    if body.main is None:
        raise body.error("the result of a UNION or the like is ordered by names of its columns", value.first)
    for i in value:
        named = body.is_name(i) and body.word(i - 1) != "." and body.word(i + 1) not in {".", "("}
        if named and body.names[i].casefold() in known:
            reason = f"{body.names[i]} could be a column of the result or of FROM here; put its relation in front"
            raise body.error(f"{reason}, as in r.{body.names[i]}, or order by a named column of the result", i)
    return None
