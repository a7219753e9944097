"""A channel's body rewritten to run once for all subscriptions, or for one of them.

For all, a body goes into ``SELECT … FROM __subs __s, LATERAL (body)`` (see :mod:`tocsin.data.channels.query`). A SELECT
that only compares parameters for equality refers to the outer row, ``__s``, and Spark turns that into a hash join. In
any other use (``near``, ranges, the select list, subqueries) Spark would first join the SELECT with every distinct
value of the parameters, a nested loop. Then the subscription's row is made a relation of each SELECT that needs it,
tied to the outer one by its unique id alone, and Spark sees an ordinary join.

``is_new(alias)`` makes the alias read only what is new; ``near`` becomes an equality of grid cells where it joins two
relations. Everything else in the text stays as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tocsin.data.sql import grid
from tocsin.data.sql.fresh import new_relations
from tocsin.data.sql.near import Cells, Near, nears
from tocsin.data.sql.patch import Patch, Rendered
from tocsin.data.sql.reading import Reading
from tocsin.data.sql.scopes import Item, Scope, Span
from tocsin.data.sql.stars import bare_stars, hide
from tocsin.model.definitions import Channel, Dataset

OUTER = "__s"
SUBSCRIPTIONS = "__subs"
BE = "__be"


def fresh(dataset: str) -> str:
    """The view of what is new in a dataset."""
    return f"__new_{dataset}"


def parameter(index: int) -> str:
    """The column of the subscriptions that holds a channel's parameter."""
    return f"__p{index}"


def key(index: int) -> str:
    """The column that holds a value to order the result by that is not one of its columns."""
    return f"__o{index}"


class Way(Enum):
    """How a SELECT gets at the parameters: through a row of its own where that pays, or always from outside."""

    ROW = "row"
    OUTER = "outer"


@dataclass(frozen=True)
class Rewritten:
    """The body for Spark, and the datasets it reads whole (``whole``) and only what is new of (``fresh``)."""

    rendered: Rendered
    whole: frozenset[str]
    fresh: frozenset[str]

    @property
    def sql(self) -> str:
        return self.rendered.text


class Rewriter:
    """Rewrites one channel's body, given the datasets there are."""

    def __init__(self, channel: Channel, datasets: Mapping[str, Dataset]) -> None:
        self.reading = Reading(channel, datasets)
        self.body = self.reading.body
        self._new = new_relations(self.reading)
        nears(self.reading, self._new, ())

    def for_all(self, way: Way = Way.ROW, keys: Sequence[Span] = ()) -> Rewritten:
        """The body as the right side of the LATERAL join, with a further column for each of ``keys``.

        StatementError where Spark would take the result, but give wrong rows for it.
        """
        rows = self._rows() if way is Way.ROW else set()
        self._check_limits(rows)
        outer = {s.number for s in self.body.scopes if s.home.number not in rows}

        def value(token: int) -> str:
            home = self._home(token)
            return f"{_row(home.number) if home.number in rows else OUTER}.{parameter(self.reading.parameter(token))}"

        writing = _Writing(self.reading, self._new, nears(self.reading, self._new, outer), rows)
        return self._rewritten(writing.written(value, keys))

    def for_one(self, literals: Sequence[str]) -> Rewritten:
        """The body as a query of its own, with the parameters' values written into it, and no grid."""
        plain = [Near(near.call, near.arguments, None) for near in nears(self.reading, self._new, ())]
        writing = _Writing(self.reading, self._new, plain, set())
        return self._rewritten(writing.written(lambda token: literals[self.reading.parameter(token)], ()))

    def _rewritten(self, rendered: Rendered) -> Rewritten:
        items = [item for scope in self.body.scopes for item in scope.items if item.key not in self._new]
        whole = frozenset(dataset.name for item in items if (dataset := self.reading.dataset(item)))
        return Rewritten(rendered, whole, frozenset(dataset.name for dataset in self._new.values()))

    def _home(self, token: int) -> Scope:
        scope = self.body.scope(token)
        if scope is None:
            raise self.body.error("a parameter can only be used in a SELECT", token)
        return scope.home

    def _rows(self) -> set[int]:
        """The SELECTs that get the subscription's row as a relation: all that use parameters, or none.

        For all then depends on the outer row by its id alone; Spark gets some mixtures wrong (see _check_limits).
        """
        using = {home.number: home for home in map(self._home, self.reading.references)}
        if not using or (len(using) == 1 and all(map(self._is_plain, using.values()))):
            return set()
        return {home.number for home in using.values() if not home.depth and not home.joins("RIGHT", "FULL")}

    def _is_plain(self, scope: Scope) -> bool:
        """Whether a SELECT only compares parameters for equality, which is a hash join as it is."""
        near = any(self.body.scope(call) is scope for call in self.body.calls("NEAR"))
        if near and any(self.reading.looked_up(scope, item) for item in scope.items):
            return False
        conditions = [c for c, item in self.body.conditions(scope) if item is None or item.movable]
        return {self.reading.compared(c) for c in conditions}.issuperset(self.reading.references)

    def _check_limits(self, rows: set[int]) -> None:
        """Spark counts a LIMIT's rows apart only by what is used of the outer row below the LIMIT itself.

        With more used elsewhere, it would cut the rows of several subscriptions together.
        """
        limits = [i for i, word in enumerate(self.body.words) if word in {"LIMIT", "OFFSET"}]
        used = {BE if self._home(t).number in rows else self.reading.parameter(t) for t in self.reading.references}
        homes = {self._home(t).number for t in self.reading.references}
        plain = len(homes) == 1 and self._is_plain(self.body.scopes[min(homes)])
        if limits and len(used) > 1 and not plain:
            raise self.body.error("LIMIT cannot be used here; rank the rows with row_number() instead", limits[0])
        for limit in limits:
            self._check_nested_limit(limit)

    def _check_nested_limit(self, limit: int) -> None:
        """The same inside a subquery: all parameters there must be used below the LIMIT."""
        scope = self.body.scope(limit)
        if scope is None or not scope.depth:
            return
        inside = [t for t in self.reading.references if (other := self.body.scope(t)) and other.depth]
        if any(self.body.scope(t) is not scope or (t not in scope.where and t not in scope.clause) for t in inside):
            raise self.body.error("LIMIT cannot be used in a subquery beside parameters; write a join instead", limit)


class _Writing:
    """One way of writing a body anew."""

    def __init__(self, reading: Reading, new: Mapping[int, Dataset], found: list[Near], rows: set[int]) -> None:
        self._reading, self._body = reading, reading.body
        self._new, self._nears, self._rows = new, found, rows
        self._cells = {near.cells.exploded.key: (near, near.cells) for near in found if near.cells}
        self._patch = Patch(self._body)

    def written(self, value: Callable[[int], str], keys: Sequence[Span]) -> Rendered:
        for token in self._reading.references:
            self._patch.replace(Span(token, token + 1), value(token))
        for call in self._body.calls("IS_NEW"):
            self._patch.replace(self._body.call(call), "true")
        for near in self._nears:
            self._write_near(near)
        for index, span in enumerate(keys):
            scope = self._body.scope(span.first)
            if scope is not None:
                self._patch.after(scope.select.last - 1, f", {self._patch.render(span)} AS {key(index)}")
        for scope in reversed(self._body.scopes):
            self._write_scope(scope)
        return self._patch.rendered(self._body.whole)

    def _write_near(self, near: Near) -> None:
        exact = grid.condition(*(self._patch.render(argument) for argument in near.arguments))
        if near.cells is None:
            self._patch.replace(near.call, exact)
            return
        x, y = (self._patch.render(value) for value in near.cells.there)
        cell = f"{_quoted(near.cells.exploded.alias)}.{near.cells.column}"
        same = grid.same_cell(cell, x, y, self._width(near, near.cells))
        self._patch.replace(near.call, f"({same} AND {exact})")

    def _width(self, near: Near, cells: Cells) -> str:
        """The width of the cell in which the row at hand is to be looked for."""
        radius = self._patch.render(near.radius)
        varies = cells.widest is not None or self._reading.refers([near.radius])
        return grid.width_class(radius) if varies else grid.width(radius)

    def _widths(self, near: Near, cells: Cells) -> str | None:
        """A query for all cell widths in use, as one array; None where there is only one width."""
        if cells.widest is not None:
            every = grid.width_class(self._patch.render(near.radius))
            return f"SELECT collect_set({every}) FROM {self._relation(cells.widest)}"
        if not self._reading.refers([near.radius]):
            return None
        own = Patch(self._body)
        for token in self._reading.references:
            own.replace(Span(token, token + 1), parameter(self._reading.parameter(token)))
        return f"SELECT collect_set({grid.width_class(own.render(near.radius))}) FROM {SUBSCRIPTIONS}"

    def _write_scope(self, scope: Scope) -> None:
        leading = list(self._leading_items(scope))
        hide(self._body, scope, self._patch, self._added(scope))
        if scope.number in self._rows:
            self._write_groups(scope)
        if leading:
            span = Span(scope.clause.first, leading[-1].whole.last)
            self._patch.replace(span, self._leading(scope, leading))
        elif scope.number in self._rows and scope.items:
            self._patch.before(scope.clause.first, f"{_row_relation(scope)} CROSS JOIN ")
        elif scope.number in self._rows:
            self._patch.after(scope.select.last - 1, f" FROM {_row_relation(scope)}")
        for item in scope.items[len(leading) :]:
            if item.key in self._new or item.key in self._cells:
                self._patch.replace(item.source, self._source(item))

    def _write_groups(self, scope: Scope) -> None:
        """Groups by the parameters too, which changes no group, so that they may be used above the grouping."""
        group = self._body.clauses(scope.whole).get("GROUP BY")
        if not group or self._body.words[group.first : group.last] == ["ALL"]:
            return
        below = (scope.clause, scope.where, group)
        tokens = [t for t in self._reading.references if t in scope.whole and not any(t in span for span in below)]
        homes = ((t, self._body.scope(t)) for t in tokens)
        used = {self._reading.parameter(t) for t, home in homes if home and home.home is scope}
        columns = [f", {_row(scope.number)}.{parameter(i)}" for i in sorted(used)]
        self._patch.after(group.last - 1, "".join(columns))

    def _added(self, scope: Scope) -> dict[str, list[str]]:
        """The columns that are added to a SELECT, by the relation they are added to."""
        exploded = [item for item in scope.items if item.key in self._cells and item.shown]
        added = {item.alias or "": [self._cells[item.key][1].column] for item in exploded}
        if scope.number in self._rows:
            parameters = range(len(self._reading.channel.parameters))
            added[_row(scope.number)] = [BE, *(parameter(i) for i in parameters)]
        return added

    def _leading_items(self, scope: Scope) -> Sequence[Item]:
        """The relations in front that may be joined in any order; none where that would show or does not matter."""
        if scope.number not in self._rows or bare_stars(self._body, scope):
            return []
        count = 0
        while count < len(scope.items) and scope.items[count].movable:
            count += 1
        return scope.items[:count]

    def _leading(self, scope: Scope, items: Sequence[Item]) -> str:
        """The subscription's row and ``items``, in an order, which Spark keeps, that joins few rows at a time."""
        ordered = sorted(items, key=lambda item: self._rank(scope, item))
        conditions = [f"({self._patch.render(item.on)})" for item in items if item.on]
        relations = [_row_relation(scope), *(self._source(item) for item in ordered)]
        return f"{' CROSS JOIN '.join(relations[:-1])} JOIN {relations[-1]} ON {' AND '.join(conditions) or 'true'}"

    def _rank(self, scope: Scope, item: Item) -> int:
        if item.key in self._cells:
            return 2
        return 0 if self._reading.looked_up(scope, item) else 1

    def _relation(self, item: Item) -> str:
        """A relation as it is to be read: all of it, or what is new."""
        if item.key in self._new:
            return f"{fresh(self._new[item.key].name)} {_quoted(item.alias)}"
        return self._patch.render(item.source)

    def _source(self, item: Item) -> str:
        """The same, with the cells it is put into, where that is asked for."""
        if item.key not in self._cells:
            return self._relation(item)
        near, cells = self._cells[item.key]
        x, y = (self._patch.render(value) for value in cells.here)
        alias, relation, widths = _quoted(item.alias), self._relation(item), self._widths(near, cells)
        if widths is None:
            around = grid.neighbourhood(x, y, self._width(near, cells))
            return f"(SELECT {alias}.*, explode({around}) AS {cells.column} FROM {relation}) {alias}"
        # Spark takes no subquery inside transform(), so the widths are exploded first.
        around = grid.neighbourhood(x, y, f"{alias}.__width")
        wide = f"(SELECT {alias}.*, explode(({widths})) AS __width FROM {relation}) {alias}"
        return f"(SELECT {alias}.* EXCEPT (__width), explode({around}) AS {cells.column} FROM {wide}) {alias}"


def _row(number: int) -> str:
    return f"__row{number}"


def _row_relation(scope: Scope) -> str:
    return f"(SELECT * FROM {SUBSCRIPTIONS} WHERE {BE} = {OUTER}.{BE}) {_row(scope.number)}"


def _quoted(alias: str | None) -> str:
    return f"`{(alias or '').replace('`', '``')}`"
