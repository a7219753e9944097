"""A channel's body rewritten to run once for all subscriptions, or for one of them.

For all, a body goes into ``SELECT … FROM __subs __s, LATERAL (body)`` (see :mod:`tocsin.data.compiler.query`). A SELECT
that only compares parameters for equality refers to the outer row, ``__s``, and Spark turns that into a hash join. In
any other use (``near``, ranges, the select list, subqueries) Spark would first join the SELECT with every distinct
value of the parameters, a nested loop. Then the subscription's row is made a relation of each SELECT that needs it,
tied to the outer one by its unique id alone, and Spark sees an ordinary join.

``is_new(alias)`` makes the alias read only what is new; ``near`` becomes an equality of grid cells where it joins two
relations. Everything else in the text stays as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tocsin.data.compiler.generated import BE, OUTER, SUBSCRIPTIONS, fresh, key, parameter, row
from tocsin.data.compiler.near import Near, nears
from tocsin.data.compiler.patch import Rendered
from tocsin.data.compiler.reading import BodyReading
from tocsin.data.compiler.scopes import Item, Scope, Span
from tocsin.data.compiler.writing import Writing
from tocsin.schema.definitions import Channel, Dataset, DatasetKind

__all__ = ["BE", "OUTER", "SUBSCRIPTIONS", "Rewriter", "Rewritten", "Way", "fresh", "key", "parameter"]


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
        self.reading = BodyReading(channel, datasets)
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
            return f"{row(home.number) if home.number in rows else OUTER}.{parameter(self.reading.parameter(token))}"

        writing = Writing(self.reading, self._new, nears(self.reading, self._new, outer), rows)
        return self._rewritten(writing.write(value, keys))

    def for_one(self, literals: Sequence[str]) -> Rewritten:
        """The body as a query of its own, with the parameters' values written into it, and no grid."""
        plain = [Near(near.call, near.arguments, None) for near in nears(self.reading, self._new, ())]
        writing = Writing(self.reading, self._new, plain, set())
        return self._rewritten(writing.write(lambda token: literals[self.reading.parameter(token)], ()))

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
        return {self.reading.compared_reference(c) for c in conditions}.issuperset(self.reading.references)

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


def new_relations(reading: BodyReading) -> dict[int, Dataset]:
    """The datasets that are read only as far as they are new, by the key of their relation."""
    return dict(_relation(reading, call) for call in reading.body.calls("IS_NEW"))


def _relation(reading: BodyReading, call: int) -> tuple[int, Dataset]:
    body = reading.body
    arguments = body.arguments(call)
    if len(arguments) != 1 or len(arguments[0]) != 1 or not body.is_name(arguments[0].first):
        raise body.error("is_new takes one relation's name or alias, as in is_new(r)", call)
    alias = body.names[arguments[0].first]
    scope = body.scope(call)
    item = scope.item(alias) if scope else None
    if scope is None or item is None:
        raise body.error(f"is_new({alias}): this SELECT reads nothing called {alias}", call)
    dataset = reading.dataset(item)
    if dataset is None:
        raise body.error(f"is_new({alias}): {alias} is not a dataset; name a dataset of the FROM clause", call)
    if dataset.kind is DatasetKind.REFERENCE:
        reason = f"{dataset.name} is a reference dataset, which is loaded and has no new records"
        raise body.error(f"is_new({alias}): {reason}", call)
    if not _means_the_same(reading, scope, item, call):
        reason = "must be a condition of its own, joined by AND in WHERE or in the ON of its relation: "
        raise body.error(f"is_new({alias}) {reason}not below OR or NOT, not on the outer side of a join", call)
    return item.key, dataset


def _means_the_same(reading: BodyReading, scope: Scope, item: Item, call: int) -> bool:
    """Whether reading only new rows means the same there as filtering by is_new."""
    if scope.joins("RIGHT", "FULL"):
        return False
    for conjunct, joined in reading.body.conditions(scope):
        if conjunct == reading.body.call(call):
            return joined is item or (item.inner and (joined is None or joined.inner))
    return False
