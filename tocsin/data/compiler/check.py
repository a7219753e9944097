"""What a channel must be before it is created, checked with Spark on empty relations.

Everything is refused here that would otherwise fail, or mean something else for all subscriptions than for one, at the
first execution. The body is looked at in steps, each of which may rely on those before: its words and names, its plan
for one subscription (:mod:`tocsin.data.compiler.meaning`), and its plan for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.compiler import patterns, plans, query, refusal, words
from tocsin.data.compiler.meaning import Meaning
from tocsin.data.compiler.order import Key, keys
from tocsin.data.compiler.parallel import is_parallel
from tocsin.data.compiler.reading import BodyReading
from tocsin.data.compiler.rewrite import BE, SUBSCRIPTIONS, Rewriter, Rewritten, Way, fresh, parameter
from tocsin.errors import StatementError
from tocsin.schema.definitions import Channel, Column, Dataset

# Raised whenever a body that was accepted before might be refused, or more is to be known of it, so that what was
# accepted is looked at again.
RULES: Final = 4


class Compiled(msgspec.Struct, frozen=True):
    """A checked channel, ready to run.

    ``statement`` gives the BE subscriptions with payload, rows and bytes once its relations are bound: the datasets
    ``whole``, the ``fresh`` of the datasets in ``fresh``, and the subscriptions. ``quiet`` says that without new
    records there is nothing to find, so that an execution can be left out. ``columns`` are the names and types of what
    a row of the result holds. ``parallel`` says that it is data-parallel in what is new
    (:mod:`tocsin.data.compiler.parallel`).
    """

    channel: Channel
    statement: str
    whole: frozenset[str]
    fresh: frozenset[str]
    quiet: bool
    columns: tuple[tuple[str, str], ...]
    parallel: bool = False

    def is_matched_with(self, dataset: str) -> bool:
        """Whether it can be executed on records on their way into a dataset."""
        return self.parallel and self.channel.period is None and dataset in self.fresh


def check(spark: SparkSession, channel: Channel, datasets: Mapping[str, Dataset]) -> Compiled:
    """The channel compiled, or StatementError with the line and column in its body."""
    return _Check(spark, channel, datasets).compile()


class _Check:
    def __init__(self, spark: SparkSession, channel: Channel, datasets: Mapping[str, Dataset]) -> None:
        self._spark, self._channel, self._datasets = spark.newSession(), channel, datasets
        for setting, value in query.SETTINGS.items():
            self._spark.conf.set(setting, value)
        self._bound: set[str] = set()
        words.check(self._spark, BodyReading(channel, datasets), datasets)
        self._rewriter = Rewriter(channel, datasets)
        self._body = self._rewriter.body

    def compile(self) -> Compiled:
        single = self._single()
        columns = tuple((f.name, f.dataType.simpleString()) for f in single.schema.fields)
        order = keys(self._body, single.columns)
        statement, rewritten = self._for_all(single.columns, order)
        self._check_patterns(statement, rewritten)
        return Compiled(
            channel=self._channel,
            statement=statement,
            whole=rewritten.whole,
            fresh=rewritten.fresh,
            quiet=self._is_quiet(statement, rewritten),
            columns=columns,
            parallel=self._is_parallel(rewritten),
        )

    def _bind(self, read: Rewritten) -> None:
        for name in read.whole:
            self._view(name, self._datasets[name].columns)
        for name in read.fresh:
            self._view(fresh(name), self._datasets[name].columns)
        parameters = [msgspec.structs.replace(p, name=parameter(i)) for i, p in enumerate(self._channel.parameters)]
        self._view(SUBSCRIPTIONS, parameters, first=f"id AS {BE}")

    def _view(self, name: str, columns: Sequence[Column], *, first: str = "", where: str = "true") -> None:
        """A relation of which Spark knows the columns and nothing else, least of all that it has no values."""
        schema = ", ".join(f"`{column.name}` {column.type.ddl}" for column in columns)
        values = [f"record.`{column.name}`" for column in columns]
        record = f"SELECT id, from_json(CAST(id AS STRING), '{schema}') AS record FROM range(1) WHERE {where}"
        selected = ", ".join([*([first] if first else []), *values])
        self._spark.sql(f"SELECT {selected} FROM ({record if columns else 'range(1)'})").createOrReplaceTempView(name)
        self._bound.add(name)

    def _for_all(self, columns: Sequence[str], order: Sequence[Key]) -> tuple[str, Rewritten]:
        """The statement by the first way of reaching the parameters that Spark takes, and the body in it."""
        hidden = [key.value for key in order if key.column is None]
        refused: StatementError | None = None
        for way in Way:
            try:
                rewritten = self._rewriter.for_all(way, hidden)
                statement = query.payloads(rewritten.sql, columns, query.orders(order))
                self._plan(statement, rewritten)
            except StatementError as error:
                refused = refused or error
            else:
                return statement, rewritten
        raise refused or StatementError("this cannot run for all subscriptions at once", line=1, column=1)

    def _plan(self, statement: str, rewritten: Rewritten) -> None:
        try:
            plans.prepare(self._spark.sql(statement))
        except (PySparkException, Py4JJavaError) as error:
            start = statement.index(rewritten.sql)
            raise refusal.for_all(error, start, rewritten.rendered, self._body) from None

    def _check_patterns(self, statement: str, rewritten: Rewritten) -> None:
        """In the statement for all, a parameter is a column, and only what the author has written is constant."""
        plan = plans.analyse(self._spark, plans.parse(self._spark, statement))
        for expression in patterns.with_chosen_pattern(plan):
            at = (plans.offset(expression) or 0) - statement.index(rewritten.sql)
            raise self._body.source.error(patterns.REFUSAL, rewritten.rendered.origin(max(at, 0)))

    def _single(self) -> DataFrame:
        """The body for one subscription, of which Spark knows what it means."""
        alone = self._rewriter.for_one([f"CAST(NULL AS {p.type.ddl})" for p in self._channel.parameters])
        self._bind(alone)
        # Judged before Spark is given the statement to run: some it would carry out at once.
        self._plan_of_one = self._analyse(alone)
        meaning = Meaning(self._spark, self._plan_of_one, alone.rendered, self._rewriter.reading, self._bound)
        meaning.check()
        frame = self._spark.sql(alone.sql)
        if meaning.ordered and not keys(self._body, frame.columns):
            raise StatementError("write the last ORDER BY outside of all parentheses", line=1, column=1)
        return frame

    def _analyse(self, alone: Rewritten) -> plans.Node:
        try:
            return plans.analyse(self._spark, plans.parse(self._spark, alone.sql))
        except ParseException as error:
            raise refusal.misplaced_parameter(error, alone.rendered, self._rewriter.reading) from None
        except PySparkException as error:
            raise refusal.for_one(error, alone.rendered, self._body) from None

    def _is_parallel(self, rewritten: Rewritten) -> bool:
        # Of a dataset that is also read as a whole, what is new would have to be part of that.
        if len(rewritten.fresh) != 1 or rewritten.fresh & rewritten.whole:
            return False
        return is_parallel(self._plan_of_one, fresh(next(iter(rewritten.fresh))))

    def _is_quiet(self, statement: str, rewritten: Rewritten) -> bool:
        """Whether Spark can tell that nothing new means no result."""
        if not rewritten.fresh:
            return False
        for name in rewritten.fresh:
            self._view(fresh(name), self._datasets[name].columns, where="false")
        self._spark.conf.unset(query.EXCLUDED_RULES)
        try:
            plan = plans.optimise(self._spark.sql(statement))
        except (PySparkException, Py4JJavaError):
            return False
        return plans.kind(plan) == "LocalRelation" and bool(plan.data().isEmpty())
