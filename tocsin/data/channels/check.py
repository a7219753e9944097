"""What a channel must be before it is created, checked with Spark on empty relations.

Everything is refused here that would otherwise fail, or mean something else for all subscriptions than for one, at the
first execution: a body that is not a query, unknown datasets and columns, parameters that clash with columns or do not
fit what they are compared with, anything that is not determined by the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.channels import query
from tocsin.data.sql.rewrite import BE, SUBSCRIPTIONS, Rewriter, Rewritten, Way, fresh, parameter
from tocsin.errors import StatementError
from tocsin.model.definitions import Channel, Column, Dataset

# Spark counts these as determined for the length of a query; an execution that is repeated would give something else.
_MOMENTARY = frozenset(
    "CURRENT_TIMESTAMP NOW CURRENT_DATE CURDATE CURRENT_TIME LOCALTIMESTAMP CURRENT_USER SESSION_USER "
    "CURRENT_DATABASE CURRENT_CATALOG CURRENT_SCHEMA INPUT_FILE_NAME VERSION".split()
)
# Not determined as to the order of an array only; sort_array makes them so.
_TOLERATED = frozenset({"CollectList", "CollectSet", "CollectTopK"})
_COMPARISONS = frozenset(
    {"EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "In"}
)


class Compiled(msgspec.Struct, frozen=True):
    """A checked channel, ready to run.

    ``quiet`` says that without new records there is nothing to find, so that an execution can be left out.
    """

    channel: Channel
    statement: str
    whole: frozenset[str]
    fresh: frozenset[str]
    quiet: bool
    columns: tuple[tuple[str, str], ...]


def check(spark: SparkSession, channel: Channel, datasets: Mapping[str, Dataset]) -> Compiled:
    """The channel compiled, or StatementError with the line and column in its body."""
    return _Check(spark, channel, datasets).compiled()


class _Check:
    def __init__(self, spark: SparkSession, channel: Channel, datasets: Mapping[str, Dataset]) -> None:
        self._spark, self._channel, self._datasets = spark.newSession(), channel, datasets
        self._rewriter = Rewriter(channel, datasets)
        self._body = self._rewriter.body

    def compiled(self) -> Compiled:
        self._check_words()
        alone = self._rewriter.for_one([f"CAST(NULL AS {p.type.ddl})" for p in self._channel.parameters])
        self._check_names(alone)
        self._bind()
        single = self._analysed(alone.sql)
        self._check_columns(single)
        body, rewritten = self._rewritten()
        frame = self._analysed(query.matches(body))
        plan = frame._jdf.queryExecution().analyzed()
        self._check_determined(plan)
        self._check_types(plan)
        self._planned(frame)
        return Compiled(
            channel=self._channel,
            statement=self._statement(body),
            whole=rewritten.whole,
            fresh=rewritten.fresh,
            quiet=self._is_quiet(body, rewritten),
            columns=tuple((f.name, f.dataType.simpleString()) for f in single.schema.fields),
        )

    def _check_words(self) -> None:
        body = self._body
        if not body.words:
            raise StatementError("the channel has no query after AS")
        if body.words[0] not in {"SELECT", "WITH", "("} or not body.scopes:
            raise self._rewriter.error(
                f"a channel is a query that begins with SELECT or WITH, not {body.tokens[0].text}", 0
            )
        for i, word in enumerate(body.words):
            called = word in _MOMENTARY and body.words[i - 1 : i] != ["."]
            bare_clock = word == "UNIX_TIMESTAMP" and body.words[i + 1 : i + 3] == ["(", ")"]
            if (called and not self._is_parameter(word)) or bare_clock:
                raise self._rewriter.error(
                    f"{body.tokens[i].text} depends on when the channel runs; a body must be determined by its data", i
                )
            if word == "TABLESAMPLE":
                raise self._rewriter.error("TABLESAMPLE is random; a body must be determined by its data", i)

    def _is_parameter(self, word: str) -> bool:
        return any(p.name.upper() == word for p in self._channel.parameters)

    def _check_names(self, alone: Rewritten) -> None:
        """Parameters must not be called like anything that the body could mean instead."""
        names = {p.name.casefold(): p.name for p in self._channel.parameters}
        for name in sorted(alone.whole | alone.fresh):
            for column in self._datasets[name].columns:
                if column.name.casefold() in names:
                    raise self._at_name(
                        names[column.name.casefold()],
                        f"parameter {names[column.name.casefold()]} is named like a column of {name}; "
                        "call the parameter something else",
                    )
        body = self._body
        for i, token in enumerate(body.tokens):
            aliased = i and body.words[i - 1] == "AS" and body.is_name(i)
            if aliased and token.text.casefold() in names:
                raise self._rewriter.error(f"{token.text} is a parameter and cannot be an alias too", i)

    def _at_name(self, name: str, reason: str) -> StatementError:
        at = next((i for i, t in enumerate(self._body.tokens) if t.text.casefold() == name.casefold()), 0)
        return self._rewriter.error(reason, at)

    def _bind(self) -> None:
        for dataset in self._datasets.values():
            self._view(dataset.name, dataset.columns, rows=1)
            self._view(fresh(dataset.name), dataset.columns, rows=1)
        parameters = tuple(
            msgspec.structs.replace(p, name=parameter(i)) for i, p in enumerate(self._channel.parameters)
        )
        self._view(SUBSCRIPTIONS, parameters, rows=1, be=True)

    def _view(self, name: str, columns: tuple[Column, ...], *, rows: int, be: bool = False) -> None:
        values = [f"CAST(NULL AS {c.type.ddl}) AS `{c.name}`" for c in columns]
        source = f"range({rows})" if rows else "range(1) WHERE false"
        selected = ", ".join([*([f"id AS {BE}"] if be else []), *values])
        self._spark.sql(f"SELECT {selected} FROM {source}").createOrReplaceTempView(name)

    def _rewritten(self) -> tuple[str, Rewritten]:
        """The first way of reaching the parameters that Spark takes."""
        refused: StatementError | None = None
        for way in Way:
            rewritten = self._rewriter.for_all(way)
            try:
                self._planned(self._analysed(query.matches(rewritten.sql)))
            except StatementError as error:
                refused = refused or error
            else:
                return rewritten.sql, rewritten
        reason = refused.reason if refused else ""
        raise StatementError(f"this query cannot be run for all subscriptions at once: {reason}", line=1, column=1)

    def _statement(self, body: str) -> str:
        """The execution's statement; ordered as the body is, where that can be said from outside."""
        for order in query.orders(self._channel.body):
            statement = query.payloads(body, order)
            try:
                self._planned(self._analysed(statement))
            except StatementError:
                continue
            return statement
        return query.payloads(body)

    def _analysed(self, statement: str) -> DataFrame:
        try:
            return self._spark.sql(statement)
        except PySparkException as error:
            raise self._refusal(error) from None

    def _planned(self, frame: DataFrame) -> None:
        from py4j.protocol import Py4JJavaError

        try:
            frame._jdf.queryExecution().executedPlan()
        except PySparkException as error:
            raise self._refusal(error) from None
        except Py4JJavaError as error:
            raise StatementError(_sentence(str(error.java_exception.getMessage())), line=1, column=1) from None

    def _refusal(self, error: PySparkException) -> StatementError:
        """Spark's reason, placed where the body has what Spark complains of."""
        reason = _sentence(str(error))
        fragments = [c.fragment() for c in _contexts(error)]
        names = re.findall(r"`([^`]+)`", reason)
        for text in [f for f in fragments if f and "\n" not in f] + names:
            at = self._body.text.casefold().find(text.casefold())
            if at >= 0:
                return self._rewriter.error_at(reason, at)
        return StatementError(reason, line=1, column=1)

    def _check_columns(self, frame: DataFrame) -> None:
        seen: set[str] = set()
        for name in frame.columns:
            if name.casefold() in seen:
                raise self._at_name(name, f"two columns of the result are called {name}; give one of them an alias")
            seen.add(name.casefold())

    def _check_determined(self, plan: Any) -> None:
        for expression in _expressions(plan):
            if expression.deterministic() or any(not child.deterministic() for child in _children(expression)):
                continue
            kind = expression.getClass().getSimpleName()
            if kind in _TOLERATED or kind == "AggregateExpression":
                continue
            name = str(expression.prettyName())
            raise self._at_name(name, f"{name} is not determined by the data; a repeated execution would differ")

    def _check_types(self, plan: Any) -> None:
        """A parameter compared with another kind of thing is a mistake, although Spark would convert it."""
        for expression in _expressions(plan):
            if expression.getClass().getSimpleName() not in _COMPARISONS:
                continue
            sides = list(_children(expression))
            names = [match[1] for side in sides if (match := re.search(r"__p(\d+)\b", str(side.toString())))]
            converted = next((side for side in sides if self._is_converted(side)), None)
            if names and converted is not None:
                wanted = self._channel.parameters[int(names[0])]
                found = str(next(iter(_children(converted))).dataType().sql())
                into = str(converted.dataType().sql())
                other = into if found == wanted.type.ddl else found
                raise self._at_name(
                    wanted.name, f"parameter {wanted.name} is {wanted.type.ddl}, but is compared with {other}"
                )

    def _is_converted(self, side: Any) -> bool:
        """Whether Spark inserted a conversion between text and something else."""
        if side.getClass().getSimpleName() != "Cast" or side.getTagValue(self._user_cast()).isDefined():
            return False
        child = next(iter(_children(side)))
        types = {str(side.dataType().typeName()), str(child.dataType().typeName())}
        return len(types) == 2 and "string" in types

    def _user_cast(self) -> Any:
        jvm: Any = self._spark._jvm
        return getattr(jvm.org.apache.spark.sql.catalyst.expressions, "Cast$").__getattr__("MODULE$").USER_SPECIFIED_CAST()

    def _is_quiet(self, body: str, rewritten: Rewritten) -> bool:
        """Whether Spark can tell that nothing new means no result."""
        if not rewritten.fresh:
            return False
        for name in rewritten.fresh:
            self._view(fresh(name), self._datasets[name].columns, rows=0)
        plan = self._spark.sql(query.matches(body))._jdf.queryExecution().optimizedPlan()
        return str(plan.getClass().getSimpleName()) == "LocalRelation"


def _contexts(error: PySparkException) -> list[Any]:
    try:
        return list(error.getQueryContext())
    except (AttributeError, TypeError):
        return []


def _sentence(message: str) -> str:
    """Spark's message without its codes and plans."""
    first = message.strip().split("\n")[0].split(" SQLSTATE")[0].split("; line ")[0]
    text = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", first).strip().rstrip(";")
    for generated, meant in ((r"`?__new_(\w+)`?", r"`\1`"), (r"`?__subs`?", "subscriptions"), (r"`?__p\d+`?", "a parameter")):
        text = re.sub(generated, meant, text)
    return text[:400]


def _expressions(plan: Any) -> Iterator[Any]:
    """All expressions of a logical plan, those of subqueries included."""
    for expression in _sequence(plan.expressions()):
        yield from _below(expression)
    for child in _sequence(plan.children()):
        yield from _expressions(child)
    if str(plan.getClass().getSimpleName()) in {"WithCTE"}:
        return


def _below(expression: Any) -> Iterator[Any]:
    yield expression
    for child in _children(expression):
        yield from _below(child)
    if str(expression.getClass().getSimpleName()).endswith("Subquery") or hasattr(expression, "plan") and _is_subquery(expression):
        yield from _expressions(expression.plan())


def _is_subquery(expression: Any) -> bool:
    return str(expression.getClass().getSimpleName()) in {"Exists", "ListQuery", "InSubquery"}


def _children(expression: Any) -> list[Any]:
    return _sequence(expression.children())


def _sequence(scala: Any) -> list[Any]:
    return [scala.apply(i) for i in range(scala.size())]
