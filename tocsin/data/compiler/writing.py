"""The text of a rewritten body: the body with small spans of it replaced.

What is replaced: parameters by where their values are, ``is_new`` by the relation of what is new, ``near`` by its
condition and the grid cells it needs, and the FROM clause where the subscription's row becomes one of its relations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tocsin.data.compiler import grid
from tocsin.data.compiler.generated import BE, OUTER, SUBSCRIPTIONS, fresh, key, parameter, quote_name, row
from tocsin.data.compiler.near import Cells, Near
from tocsin.data.compiler.patch import Patch, Rendered
from tocsin.data.compiler.reading import BodyReading
from tocsin.data.compiler.scopes import Body, Item, Scope, Span
from tocsin.schema.definitions import Dataset


class Writing:
    """Writes a body anew: the SELECTs numbered in ``rows`` get the subscription's row as a relation."""

    def __init__(self, reading: BodyReading, new: Mapping[int, Dataset], found: list[Near], rows: set[int]) -> None:
        self._reading, self._body = reading, reading.body
        self._new, self._nears, self._rows = new, found, rows
        self._cells = {near.cells.exploded.key: (near, near.cells) for near in found if near.cells}
        self._patch = Patch(self._body)

    def write(self, value: Callable[[int], str], keys: Sequence[Span]) -> Rendered:
        """The body with ``value`` of each reference in its place, and a further column for each of ``keys``."""
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
        return self._patch.render_places(self._body.whole)

    def _write_near(self, near: Near) -> None:
        exact = grid.condition(*(self._patch.render(argument) for argument in near.arguments))
        if near.cells is None:
            self._patch.replace(near.call, exact)
            return
        x, y = (self._patch.render(value) for value in near.cells.there)
        cell = f"{quote_name(near.cells.exploded.alias or '')}.{near.cells.column}"
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
        hide(self._body, scope, self._patch, self._added_columns(scope))
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
        columns = [f", {row(scope.number)}.{parameter(i)}" for i in sorted(used)]
        self._patch.after(group.last - 1, "".join(columns))

    def _added_columns(self, scope: Scope) -> dict[str, list[str]]:
        """The columns that are added to a SELECT, by the relation they are added to."""
        exploded = [item for item in scope.items if item.key in self._cells and item.shown]
        added = {item.alias or "": [self._cells[item.key][1].column] for item in exploded}
        if scope.number in self._rows:
            parameters = range(len(self._reading.channel.parameters))
            added[row(scope.number)] = [BE, *(parameter(i) for i in parameters)]
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
        if self._reading.looked_up(scope, item):
            return 0
        return 2 if item.key in self._cells else 1

    def _relation(self, item: Item) -> str:
        """A relation as it is to be read: all of it, or what is new."""
        if item.key in self._new:
            return f"{fresh(self._new[item.key].name)} {quote_name(item.alias or '')}"
        return self._patch.render(item.source)

    def _source(self, item: Item) -> str:
        """The same, with the cells it is put into, where that is asked for."""
        if item.key not in self._cells:
            return self._relation(item)
        near, cells = self._cells[item.key]
        x, y = (self._patch.render(value) for value in cells.here)
        alias, relation, widths = quote_name(item.alias or ""), self._relation(item), self._widths(near, cells)
        if widths is None:
            around = grid.neighbourhood(x, y, self._width(near, cells))
            return f"(SELECT {alias}.*, explode({around}) AS {cells.column} FROM {relation}) {alias}"
        # Spark takes no subquery inside transform(), so the widths are exploded first.
        around = grid.neighbourhood(x, y, f"{alias}.__width")
        wide = f"(SELECT {alias}.*, explode(({widths})) AS __width FROM {relation}) {alias}"
        return f"(SELECT {alias}.* EXCEPT (__width), explode({around}) AS {cells.column} FROM {wide}) {alias}"


def _row_relation(scope: Scope) -> str:
    return f"(SELECT * FROM {SUBSCRIPTIONS} WHERE {BE} = {OUTER}.{BE}) {row(scope.number)}"


_BEFORE = frozenset({"SELECT", "DISTINCT", "ALL", ",", "(", "."})


def bare_stars(body: Body, scope: Scope) -> list[int]:
    """The stars of a SELECT that stand for all its relations."""
    return [star for star in _stars(body, scope) if body.words[star - 1] != "."]


def hide(body: Body, scope: Scope, patch: Patch, added: Mapping[str, list[str]]) -> None:
    """Hides the columns ``added`` to each relation, by its alias."""
    for star in _stars(body, scope):
        if body.words[star - 1] == ".":
            item = scope.item(body.names[star - 2]) if body.word(star - 3) != "." else None
            hidden = added.get(item.alias or "", []) if item else []
        else:
            hidden = [column for columns in added.values() for column in columns]
        if hidden:
            _hide(body, star, patch, ", ".join(hidden))


def _stars(body: Body, scope: Scope) -> Iterator[int]:
    for i in scope.own(scope.select):
        counts = body.word(i - 2) == "COUNT" and body.word(i - 1) == "(" and body.word(i + 1) == ")"
        if body.words[i] == "*" and body.word(i - 1) in _BEFORE and not counts:
            yield i


def _hide(body: Body, star: int, patch: Patch, hidden: str) -> None:
    if body.word(star + 1) == "EXCEPT" and body.word(star + 2) == "(":
        patch.before(star + 3, f"{hidden}, ")
    else:
        patch.replace(Span(star, star + 1), f"* EXCEPT ({hidden})")
