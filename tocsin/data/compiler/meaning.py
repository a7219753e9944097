"""What a body means to Spark, and whether that is one and the same for everyone and at every time.

Looked at in the analysed plan of the body for one subscription.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection

from pyspark.sql import SparkSession

from tocsin.data.compiler import plans
from tocsin.data.compiler.patch import Rendered
from tocsin.data.compiler.plans import Node
from tocsin.data.compiler.reading import BodyReading
from tocsin.data.compiler.text import Span
from tocsin.errors import StatementError

# Spark counts these as determined for the length of a query; an execution that is repeated would give something else.
_MOMENTARY = frozenset({"Now", "SparkVersion", "LocalTimestamp", "InputFileName", "InputFileBlockStart"})
# What a body is made of. Other kinds of rows, of this Spark or of a later one, are refused: files, tables, programs.
_OPERATORS = frozenset(
    {
        *("Aggregate", "CTERelationDef", "CTERelationRef", "Deduplicate", "Distinct", "Except", "Expand", "Filter"),
        *("Generate", "GlobalLimit", "Intersect", "Join", "LateralJoin", "LocalLimit", "LocalRelation", "Offset"),
        *("OneRowRelation", "PipeOperator", "Project", "Range", "Sort", "SubqueryAlias", "Tail", "Union", "UnionLoop"),
        *("UnionLoopRef", "View", "Window", "WithCTE"),
    }
)
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
# Of Spark's own expressions, those that run what others wrote, or read what no dataset holds.
_FOREIGN = ("Udf", "UDF", "UDAF", "UDTF", "Reflect", "Python", "ApplyFunction", "Aggregator", "VariableReference")
_FOREIGN_GENERATORS = frozenset({"SQLKeywords", "Collations", "UserDefinedGenerator"})
# These take whichever record comes first, or an order of values that is said nowhere.
_ARBITRARY = frozenset({"First", "Last", "AnyValue"})
_COMPARISONS = ("Equal", "LessThan", "GreaterThan", "In", "Like", "RLike")
_SUBQUERIES = frozenset({"Exists", "InSubquery", "LateralSubquery", "ListQuery", "ScalarSubquery"})
_LIMITS = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Tail"})


class Meaning:
    """The analysed plan of a body for one subscription, ``rendered`` as its text.

    What can be said of the text alone is said in :mod:`tocsin.data.compiler.words`. Here it is said again of what Spark
    made of the text, so that nothing depends on our reading of SQL being the same as Spark's.

    Args:
        bound: the names of the views that stand for the datasets.
    """

    def __init__(
        self, spark: SparkSession, plan: Node, rendered: Rendered, reading: BodyReading, bound: Collection[str]
    ) -> None:
        self._plan = plan
        self._columns = plans.columns(plan)
        self._bound = bound
        self._rendered, self._reading, self._body = rendered, reading, reading.body
        self._written = plans.written_cast(spark)

    @property
    def ordered(self) -> bool:
        """Whether the result has an order."""
        return _is_sorted(self._plan)

    def check(self) -> None:
        """Refuses what is not determined by the data, unclear, or likely to be a mistake."""
        self._check_columns()
        for node in plans.nodes(self._plan, inside=_not_a_view):
            self._check_relation(node)
            self._check_rows(node)
        for expression in plans.expressions(self._plan, inside=_not_a_view):
            self._check_expression(expression)

    def _check_columns(self) -> None:
        seen: set[str] = set()
        for name in self._columns:
            if name.casefold() in seen:
                named = (i for i in self._body.whole if self._body.names[i].casefold() == name.casefold())
                reason = f"two columns of the result are called {name}; give one of them an alias"
                raise self._body.error(reason, next(named, 0))
            seen.add(name.casefold())

    def _check_relation(self, node: Node) -> None:
        """Rows come from datasets, or are written in the body."""
        kind = plans.kind(node)
        if kind == "ScriptTransformation":
            raise self._error("a body cannot run programs", node)
        if kind not in _OPERATORS or (kind == "View" and not self._is_bound(node)):
            raise self._error(f"a body reads datasets and nothing else; this is a {_words(kind)}", node)

    def _is_bound(self, view: Node) -> bool:
        """Whether a view is one of those that stand for the datasets."""
        return bool(view.isTempView()) and str(view.desc().identifier().table()) in self._bound

    def _check_rows(self, node: Node) -> None:
        kind = plans.kind(node)
        if kind in _LIMITS and not _is_sorted(node):
            raise self._error("LIMIT and OFFSET need an ORDER BY in front; without one, any rows might come", node)

    def _check_expression(self, expression: Node, above: str = "") -> None:
        kind = plans.kind(expression)
        self._check_own(expression, kind)
        if kind == "WindowExpression" and plans.sequence(expression.windowSpec().orderSpec()):
            above = kind
        self._check_determined(expression, kind, above)
        if kind == "Cast":
            self._check_conversion(expression, above)
        for child in plans.children(expression):
            self._check_expression(child, above if above == "WindowExpression" else kind)

    def _check_own(self, expression: Node, kind: str) -> None:
        """Only what Spark itself computes, from values alone."""
        foreign = not str(expression.getClass().getName()).startswith(_EXPRESSIONS) or kind in _FOREIGN_GENERATORS
        if foreign or any(mark in kind for mark in _FOREIGN):
            raise self._error(f"{_name(expression)} does more than compute a value; a body cannot call it", expression)
        if "Xml" in kind and any("xsd" in option.casefold() for option in plans.options(expression)):
            raise self._error(f"{_name(expression)} cannot read an XSD file; leave that option out", expression)

    def _check_determined(self, expression: Node, kind: str, above: str) -> None:
        if kind in _MOMENTARY or (kind.startswith("Current") and not kind.startswith("CurrentRow")):
            reason = "depends on when and where the channel runs; a body must be determined by its data"
            raise self._error(f"{_name(expression)} {reason}", expression)
        inside = kind in _SUBQUERIES or not all(child.deterministic() for child in plans.children(expression))
        if not expression.deterministic() and not inside:
            reason = "is not determined by the data; a repeated execution would find something else"
            raise self._error(f"{_name(expression)} {reason}", expression)
        if above != "WindowExpression" and _is_arbitrary(expression, kind):
            reason = "takes whichever record comes first; say which, as with min, max, max_by or an ORDER BY in it"
            raise self._error(f"{_name(expression)} {reason}", expression)

    def _check_conversion(self, cast: Node, above: str) -> None:
        """Text is not taken for a number or a time unless the body says so: it would fail on the first that is none."""
        if cast.getTagValue(self._written).isDefined():
            return
        value = plans.children(cast)[0]
        before, after = str(value.dataType().sql()), str(cast.dataType().sql())
        parameter = self._parameter(value)
        from_text = before == "STRING" != after and (parameter or not value.foldable())
        into_text = after == "STRING" != before and parameter and above.startswith(_COMPARISONS)
        if not from_text and not into_text:
            return
        what = f"parameter {parameter}" if parameter else _show(value)
        raise self._error(f"{what} is {before}, but is used as {after} here; if that is meant, write CAST", value)

    def _parameter(self, value: Node) -> str | None:
        """The parameter that a value is, if it is one: written as CAST(NULL AS type) for one subscription."""
        at = plans.offset(value)
        if at is None or plans.kind(value) != "Cast" or plans.kind(plans.children(value)[0]) != "Literal":
            return None
        start = bisect_left(self._body.starts, self._rendered.origin(at))
        # A call of near is written anew as a whole, so that only its beginning is known as a place.
        span = self._body.call(start) if self._body.words[start] == "NEAR" else Span(start, start + 1)
        kinds = {p.name.casefold(): p.type.ddl for p in self._reading.channel.parameters}
        named = [self._body.names[i] for i in self._reading.references if i in span]
        return next((name for name in named if kinds[name.casefold()] == str(value.dataType().sql())), None)

    def _error(self, reason: str, node: Node) -> StatementError:
        return self._body.source.error(reason, self._rendered.origin(plans.offset(node) or 0))


def _not_a_view(node: Node) -> bool:
    """What is inside a dataset's view is ours."""
    return plans.kind(node) != "View"


def _words(kind: str) -> str:
    """A name of Spark's as words: LogicalRelation as logical relation."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()


def _is_sorted(plan: Node) -> bool:
    """Whether the rows of a plan come in an order."""
    while plans.kind(plan) in {*_LIMITS, "Project", "WithCTE"}:
        plan = plans.children(plan)[-1]
    return plans.kind(plan) == "Sort" and bool(getattr(plan, "global")())


def _is_arbitrary(expression: Node, kind: str) -> bool:
    if kind == "ListAgg":
        return not plans.sequence(expression.orderExpressions())
    if kind == "Mode":
        return bool(expression.reverseOpt().isEmpty())
    return kind in _ARBITRARY


def _name(expression: Node) -> str:
    return str(expression.prettyName())


def _show(value: Node) -> str:
    return str(value.sql()).replace("`", "")
