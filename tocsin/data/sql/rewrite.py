"""A channel's body rewritten to run once for all subscriptions, or for one of them.

For all, a body goes into ``SELECT … FROM __subs __s, LATERAL (body)`` (see :mod:`tocsin.data.channels.query`). A SELECT
that only compares parameters for equality refers to the outer row, ``__s``, and Spark turns that into a hash join. In
any other use (``near``, ranges, the select list, subqueries) Spark would first join the SELECT with every distinct
value of the parameters, a nested loop. There the subscription's row is made a relation of the SELECT, tied to the outer
one by its unique id alone, and Spark sees an ordinary join.

``is_new(alias)`` makes the alias read only what is new; ``near`` becomes an equality of grid cells where it joins two
relations. Everything else in the text stays as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tocsin.data.sql import grid
from tocsin.data.sql.patch import Patch
from tocsin.data.sql.scopes import Body, Item, Scope, Span
from tocsin.data.sql.source import Source
from tocsin.errors import StatementError
from tocsin.model.definitions import Channel, Dataset, DatasetKind

OUTER = "__s"
SUBSCRIPTIONS = "__subs"
BE = "__be"


def fresh(dataset: str) -> str:
    """The view of what is new in a dataset."""
    return f"__new_{dataset}"


def parameter(index: int) -> str:
    """The column of the subscriptions that holds a channel's parameter."""
    return f"__p{index}"


class Way(Enum):
    """How a SELECT gets at the parameters: through a row of its own where that pays, or always from outside."""

    ROW = "row"
    OUTER = "outer"


@dataclass(frozen=True)
class Rewritten:
    """The body for Spark, and the datasets it reads whole (``whole``) and only what is new of (``fresh``)."""

    sql: str
    whole: frozenset[str]
    fresh: frozenset[str]


@dataclass
class _Near:
    """A call of near, and the scope and join condition it is a conjunct of, if it is one."""

    call: Span
    arguments: list[Span]
    scope: Scope | None = None
    item: Item | None = None
    exploded: Item | None = None


@dataclass
class _Plan:
    """What is to be changed, found before anything is."""

    new: dict[tuple[int, int], str] = field(default_factory=dict)
    cells: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    nears: list[_Near] = field(default_factory=list)


class Rewriter:
    """Rewrites one channel's body, given the datasets there are."""

    def __init__(self, channel: Channel, datasets: Mapping[str, Dataset]) -> None:
        self.channel = channel
        self.body = Body(channel.body)
        self._source = Source(channel.body)
        self._datasets = {name.casefold(): dataset for name, dataset in datasets.items()}
        self._parameters = {p.name.casefold(): i for i, p in enumerate(channel.parameters)}
        self._references = [i for i in range(len(self.body.tokens)) if self._is_parameter(i)]

    def for_all(self, way: Way = Way.ROW) -> Rewritten:
        """The body as the right side of the LATERAL join."""
        plan = self._plan()
        rows = {s.number for s in self.body.scopes if way is Way.ROW and self._wants_row(s, plan)}

        def value(token: int) -> str:
            return f"{self._row_of(token, rows)}.{parameter(self._parameter(token))}"

        return self._write(plan, value, rows)

    def for_one(self, literals: list[str]) -> Rewritten:
        """The body as a query of its own, with the parameters' values written into it, and no grid."""
        plan = self._plan()
        return self._write(plan, lambda token: literals[self._parameter(token)], set(), gridded=False)

    def error(self, reason: str, token: int) -> StatementError:
        """An error at a token of the body."""
        return self.error_at(reason, self.body.tokens[token].start)

    def error_at(self, reason: str, offset: int) -> StatementError:
        """An error at a character of the body."""
        return self._source.error(reason, offset)

    def _plan(self) -> _Plan:
        plan = _Plan()
        for call in self.body.calls("IS_NEW"):
            self._plan_new(call, plan)
        plan.nears = [self._near(call) for call in self.body.calls("NEAR")]
        return plan

    def _is_parameter(self, i: int) -> bool:
        body = self.body
        return (
            body.tokens[i].text.casefold() in self._parameters
            and body.is_name(i)
            and (i == 0 or body.words[i - 1] != ".")
            and (i + 1 == len(body.words) or body.words[i + 1] not in {".", "("})
        )

    def _parameter(self, token: int) -> int:
        return self._parameters[self.body.tokens[token].text.casefold()]

    def _scope(self, token: int) -> Scope:
        """The innermost SELECT around a token."""
        return max((s for s in self.body.scopes if token in s.whole), key=lambda s: s.whole.first)

    def _conditions(self, scope: Scope) -> list[tuple[Span, Item | None]]:
        """The conjuncts of a SELECT: of WHERE (with None) and of each ON (with its relation)."""
        found: list[tuple[Span, Item | None]] = [(c, None) for c in self.body.conjuncts(scope.where)]
        for item in scope.items:
            found += [(c, item) for c in self.body.conjuncts(item.on)]
        return found

    def _plan_new(self, call: int, plan: _Plan) -> None:
        arguments = self.body.arguments(call)
        if len(arguments) != 1 or len(list(arguments[0])) != 1:
            raise self.error("is_new takes one relation's name or alias, as in is_new(r)", call)
        alias = self.body.tokens[arguments[0].first].text
        scope = self._scope(call)
        item = scope.item(alias)
        if item is None:
            raise self.error(f"is_new({alias}): this SELECT reads nothing called {alias}", call)
        dataset = self._datasets.get((item.name or "").casefold())
        if dataset is None:
            raise self.error(f"is_new({alias}): {alias} is not a dataset; name a dataset of the FROM clause", call)
        if dataset.kind is DatasetKind.REFERENCE:
            raise self.error(
                f"is_new({alias}): {dataset.name} is a reference dataset, which is loaded and has no new records", call
            )
        if not self._may_be_new(scope, item, call):
            raise self.error(
                f"is_new({alias}) must be a condition of its own: joined by AND in WHERE or in the ON of {alias}, "
                "not below OR or NOT, and not on the outer side of a join",
                call,
            )
        plan.new[(scope.number, item.source.first)] = dataset.name

    def _may_be_new(self, scope: Scope, item: Item, call: int) -> bool:
        """Whether reading only new rows there means the same as filtering by is_new."""
        if any({"RIGHT", "FULL"} & set(i.join.split()) for i in scope.items):
            return False
        for conjunct, joined in self._conditions(scope):
            if conjunct == self.body.call(call):
                return item.inner and (joined is None or joined.inner) or joined is item
        return False

    def _near(self, call: int) -> _Near:
        arguments = self.body.arguments(call)
        if len(arguments) != 5:
            raise self.error(f"near takes five values, near(x1, y1, x2, y2, radius), not {len(arguments)}", call)
        near = _Near(self.body.call(call), arguments)
        scope = self._scope(call)
        for conjunct, item in self._conditions(scope):
            if conjunct == near.call:
                near.scope, near.item = scope, item
        return near

    def _wants_row(self, scope: Scope, plan: _Plan) -> bool:
        """Whether the subscription's row should be a relation of this SELECT."""
        if scope.nested or not scope.items:
            return False
        own = [t for t in self._references if self._scope(t) is scope]
        if any(self._scope(t) in scope.children and self._scope(t).nested for t in self._references):
            return True
        if any(near.scope is scope for near in plan.nears) and any(self._looked_up(scope, i) for i in scope.items):
            return True
        simple = {t for c, item in self._conditions(scope) if item is None or item.inner for t in self._compared(c)}
        return not simple.issuperset(own)

    def _compared(self, conjunct: Span) -> list[int]:
        """The parameter of a conjunct ``parameter = expression``, if it is one."""
        sides = self.body.split(conjunct, {"="})
        inside = [t for t in self._references if t in conjunct]
        alone = [side.first for side in sides if len(list(side)) == 1]
        return inside if len(sides) == 2 and len(inside) == 1 and inside[0] in alone else []

    def _row_of(self, token: int, rows: set[int]) -> str:
        scope: Scope | None = self._scope(token)
        if scope is not None and scope.nested:
            scope = scope.parent
        return _row(scope) if scope is not None and scope.number in rows else OUTER

    def _write(self, plan: _Plan, value: Callable[[int], str], rows: set[int], *, gridded: bool = True) -> Rewritten:
        patch = Patch(self.body)
        for token in self._references:
            patch.replace(Span(token, token + 1), value(token))
        for call in self.body.calls("IS_NEW"):
            patch.replace(self.body.call(call), "true")
        for number, near in enumerate(plan.nears):
            if gridded:
                self._grid(near, number, patch, plan, rows)
            x1, y1, x2, y2, radius = (patch.render(a) for a in near.arguments)
            exact = grid.condition(x1, y1, x2, y2, radius)
            cells = plan.cells.pop((-1, near.call.first), None)
            patch.replace(near.call, f"({cells[0]} AND {exact})" if cells else exact)
        for scope in reversed(self.body.scopes):
            self._write_scope(scope, patch, plan, rows)
        new = frozenset(plan.new.values())
        return Rewritten(patch.render(Span(0, len(self.body.tokens))), self._whole(plan), new)

    def _whole(self, plan: _Plan) -> frozenset[str]:
        """The datasets read as a whole: named in a FROM clause, and not by is_new there."""
        named = (
            self._datasets[item.name.casefold()].name
            for scope in self.body.scopes
            for item in scope.items
            if item.name and item.name.casefold() in self._datasets
            if (scope.number, item.source.first) not in plan.new
        )
        return frozenset(named)

    def _write_scope(self, scope: Scope, patch: Patch, plan: _Plan, rows: set[int]) -> None:
        if scope.number not in rows and not any(self._touched(scope, item, plan) for item in scope.items):
            return
        sources = {item.source.first: self._source_of(scope, item, patch, plan) for item in scope.items}
        run = 0
        while run < len(scope.items) and scope.items[run].inner:
            run += 1
        generated = [plan.cells[key][1] for item in scope.items if (key := (scope.number, item.source.first)) in plan.cells]
        if scope.number in rows:
            generated += [BE, *(parameter(i) for i in range(len(self.channel.parameters)))]
        self._write_stars(scope, patch, plan, generated)
        if scope.number in rows and run:
            leading = self._leading(scope, scope.items[:run], patch, plan, sources)
            patch.replace(Span(scope.clause.first, _end(scope.items[run - 1])), leading)
        for item in scope.items if scope.number not in rows else scope.items[run:]:
            patch.replace(item.source, sources[item.source.first])
        if scope.number in rows and not run:
            patch.before(scope.items[0].source.first, f"{self._row_relation(scope)} CROSS JOIN ")

    def _touched(self, scope: Scope, item: Item, plan: _Plan) -> bool:
        key = (scope.number, item.source.first)
        return key in plan.new or key in plan.cells

    def _source_of(self, scope: Scope, item: Item, patch: Patch, plan: _Plan) -> str:
        """The relation as it is to be read: what is new of it, and with its cells, where that is asked for."""
        key = (scope.number, item.source.first)
        text = f"{fresh(plan.new[key])} {item.alias}" if key in plan.new else patch.render(item.source)
        if key in plan.cells:
            cells, name = plan.cells[key]
            text = f"(SELECT {item.alias}.*, explode({cells}) AS {name} FROM {text}) {item.alias}"
        return text

    def _row_relation(self, scope: Scope) -> str:
        return f"(SELECT * FROM {SUBSCRIPTIONS} WHERE {BE} = {OUTER}.{BE}) {_row(scope)}"

    def _leading(
        self, scope: Scope, items: list[Item], patch: Patch, plan: _Plan, sources: dict[int, str]
    ) -> str:
        """The inner-joined relations, in an order in which Spark, which keeps it, joins few rows at a time."""

        def rank(item: Item) -> int:
            if (scope.number, item.source.first) in plan.cells:
                return 2
            return 0 if self._looked_up(scope, item) else 1

        ordered = sorted(items, key=rank)
        conditions = [f"({patch.render(item.on)})" for item in items if item.on]
        relations = [self._row_relation(scope), *(sources[item.source.first] for item in ordered)]
        joined = " CROSS JOIN ".join(relations[:-1])
        return f"{joined} JOIN {relations[-1]} ON {' AND '.join(conditions) or 'true'}"

    def _looked_up(self, scope: Scope, item: Item) -> bool:
        """Whether a parameter is compared with the primary key of a relation, so that it gives one row at most."""
        dataset = self._datasets.get((item.name or "").casefold())
        if dataset is None or dataset.primary_key is None:
            return False
        key = dataset.primary_key.upper()
        for conjunct, joined in self._conditions(scope):
            words = self.body.words[conjunct.first : conjunct.last]
            if (joined is None or joined.inner) and self._compared(conjunct) and key in words:
                return True
        return False

    def _write_stars(self, scope: Scope, patch: Patch, plan: _Plan, generated: list[str]) -> None:
        """Keeps the columns that the rewrite adds out of ``*`` and ``alias.*``."""
        words = self.body.words
        for i in scope.own(scope.select):
            if words[i] != "*":
                continue
            hidden = self._hidden_by(scope, i, plan, generated)
            if not hidden:
                continue
            if i + 2 < len(words) and words[i + 1] == "EXCEPT" and words[i + 2] == "(":
                patch.before(i + 3, f"{', '.join(hidden)}, ")
            else:
                patch.replace(Span(i, i + 1), f"* EXCEPT ({', '.join(hidden)})")

    def _hidden_by(self, scope: Scope, star: int, plan: _Plan, generated: list[str]) -> list[str]:
        words = self.body.words
        if words[star - 1] == ".":
            item = scope.item(self.body.tokens[star - 2].text)
            key = (scope.number, item.source.first) if item else (-1, -1)
            return [plan.cells[key][1]] if key in plan.cells else []
        opens_list = words[star - 1] in {"SELECT", "DISTINCT", "ALL", ","}
        return generated if opens_list else []

    def _grid(self, near: _Near, number: int, patch: Patch, plan: _Plan, rows: set[int]) -> None:
        """Arranges for an equality of cells, where one side of ``near`` is a relation that can carry them."""
        if near.scope is None:
            return
        sides = [(near.arguments[:2], near.arguments[2:4]), (near.arguments[2:4], near.arguments[:2])]
        radius = near.arguments[4]
        able = [
            (item, here, there)
            for here, there in sides
            if (item := self._one_relation(near.scope, here)) is not None
            and self._may_explode(near, item, plan)
            and item.alias not in self._aliases(near.scope, [*there, radius])
            and (rows or not any(t in span for t in self._references for span in [*there, radius]))
        ]
        widths = self._widths(near.scope, radius, patch)
        if not able or widths is None:
            return
        item, here, there = min(able, key=lambda a: self._size(near.scope, a[0], plan))
        key = (near.scope.number, item.source.first)
        name = f"__cell{number}"
        x, y = (patch.render(a) for a in here)
        far_x, far_y = (patch.render(a) for a in there)
        all_widths, width = widths
        plan.cells[key] = (grid.neighbourhood(x, y, all_widths), name)
        plan.cells[(-1, near.call.first)] = (grid.same_cell(f"{item.alias}.{name}", far_x, far_y, width), "")

    def _may_explode(self, near: _Near, item: Item, plan: _Plan) -> bool:
        scope, joined = near.scope, near.item
        if scope is None or (scope.number, item.source.first) in plan.cells:
            return False
        if any({"RIGHT", "FULL", "USING", "NATURAL", "SEMI", "ANTI"} & set(i.join.split()) for i in scope.items):
            return False
        return joined is None or joined.inner or joined is item

    def _one_relation(self, scope: Scope, values: list[Span]) -> Item | None:
        """The one relation of this SELECT that all of ``values`` come from."""
        aliases = self._aliases(scope, values)
        if len(aliases) != 1 or any(t in span for t in self._references for span in values):
            return None
        return scope.item(next(iter(aliases)))

    def _aliases(self, scope: Scope, values: list[Span]) -> set[str]:
        """The aliases that ``values`` refer to; "?" for a column that cannot be told."""
        words, found = self.body.words, set()
        for i in (i for span in values for i in span):
            if not self.body.is_name(i) or i in self._references or words[i - 1] == ".":
                continue
            following = words[i + 1] if i + 1 < len(words) else ""
            if following == ".":
                item = scope.item(self.body.tokens[i].text)
                found.add(item.alias if item and item.alias else self.body.tokens[i].text)
            elif following != "(":
                found.add(self._owner(scope, self.body.tokens[i].text))
        return {alias for alias in found if alias}

    def _owner(self, scope: Scope, column: str) -> str:
        owners = [
            item.alias
            for item in scope.items
            if (dataset := self._datasets.get((item.name or "").casefold())) and dataset.column(column)
        ]
        return owners[0] if len(owners) == 1 and owners[0] else "?"

    def _widths(self, scope: Scope, radius: Span, patch: Patch) -> tuple[str, str] | None:
        """The cell widths in use, as an SQL array, and that of the row at hand; None where they cannot be told."""
        text = patch.render(radius)
        references = [t for t in self._references if t in radius]
        aliases = self._aliases(scope, [radius])
        if not references and not aliases:
            return f"array({grid.width(text)})", grid.width(text)
        if not aliases:
            own = Patch(self.body)
            for token in references:
                own.replace(Span(token, token + 1), parameter(self._parameter(token)))
            every = grid.width_class(own.render(radius))
            return f"(SELECT collect_set({every}) FROM {SUBSCRIPTIONS})", grid.width_class(text)
        item = self._one_relation(scope, [radius])
        if item is None or item.name is None:
            return None
        every = grid.width_class(text)
        return f"(SELECT collect_set({every}) FROM {self.body.slice(item.source)})", grid.width_class(text)

    def _size(self, scope: Scope, item: Item, plan: _Plan) -> int:
        """A guess at which relation is smaller: what is new before what was loaded before what grows."""
        if (scope.number, item.source.first) in plan.new:
            return 0
        dataset = self._datasets.get((item.name or "").casefold())
        order = [DatasetKind.REFERENCE, DatasetKind.KEYED, DatasetKind.APPEND]
        return 1 + order.index(dataset.kind) if dataset else 2


def _row(scope: Scope) -> str:
    return f"__row{scope.number}"


def _end(item: Item) -> int:
    return item.on.last if item.on else item.source.last
