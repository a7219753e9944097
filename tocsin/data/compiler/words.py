"""What can be said of a body from its text alone: that it is one query, over datasets, with names that are clear."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tocsin.data.compiler import plans, refusal
from tocsin.data.compiler.functions import FUNCTIONS
from tocsin.data.compiler.reading import BodyReading
from tocsin.data.compiler.scopes import Body
from tocsin.errors import StatementError
from tocsin.model import names
from tocsin.schema.definitions import Dataset

_CHANGES = ("Insert", "Update", "Delete", "Merge")
_COMPUTED_NAMES = frozenset({"PlanWithUnresolvedIdentifier", "ExpressionWithUnresolvedIdentifier"})


def check(spark: SparkSession, reading: BodyReading, datasets: Mapping[str, Dataset]) -> None:
    """Refuses a body that is not a query over ``datasets``, or whose parameters could be taken for something else."""
    body = reading.body
    if not body.words:
        raise StatementError("the channel has no query after AS", line=1, column=1)
    if body.words[0] not in {"SELECT", "WITH", "("}:
        raise body.error(f"a channel is a query that begins with SELECT or WITH, not {body.names[0]}", 0)
    plan = _parse(spark, body)
    _check_reading(body, plan)
    _check_names(body, plan)
    _check_common(body, datasets)
    _check_relations(plan, reading, datasets)
    _check_parameters(reading, plan)


def _parse(spark: SparkSession, body: Body) -> plans.Node:
    try:
        return plans.parse(spark, body.text)
    except PySparkException as error:
        raise refusal.syntax(error) from None


def _check_reading(body: Body, plan: plans.Node) -> None:
    for node in plans.nodes(plan):
        if plans.kind(node).startswith(_CHANGES):
            raise body.source.error("a channel reads its datasets and changes nothing", plans.offset(node) or 0)
    if "TABLESAMPLE" in body.words:
        reason = "a sample is random; a body must be determined by its data"
        raise body.error(reason, body.words.index("TABLESAMPLE"))


def _check_names(body: Body, plan: plans.Node) -> None:
    """Everything is called by its name, and only functions that may be called."""
    for node in plans.nodes(plan):
        _check_name(body, node)
        for expression in plans.sequence(node.expressions()):
            for part in plans.below(expression):
                _check_name(body, part)


def _check_name(body: Body, node: plans.Node) -> None:
    if plans.kind(node) in _COMPUTED_NAMES:
        reason = "IDENTIFIER computes a name; write the name itself, so that everybody sees what is meant"
        raise body.source.error(reason, plans.offset(node) or 0)
    name = _function(node)
    if name is not None and name.casefold() not in FUNCTIONS:
        reason = f"there is no function {name} for channels{names.suggestion(name, FUNCTIONS)}"
        raise body.source.error(reason, plans.offset(node) or 0)


def _function(node: plans.Node) -> str | None:
    """The name of the function that a node calls, if it calls one by name."""
    match plans.kind(node):
        case "UnresolvedFunction":
            return ".".join(map(str, plans.sequence(node.nameParts())))
        case "UnresolvedTableValuedFunction":
            return ".".join(map(str, plans.sequence(node.name())))
        case "UnresolvedGenerator":
            return str(node.name().unquotedString())
    return None


def _check_common(body: Body, datasets: Mapping[str, Dataset]) -> None:
    known = {name.casefold() for name in datasets}
    for token in body.common:
        if body.names[token].casefold() in known:
            raise body.error(f"{body.names[token]} is a dataset; call this query something else", token)


def _check_relations(plan: plans.Node, reading: BodyReading, datasets: Mapping[str, Dataset]) -> None:
    """Spark must read the relations that were found in the text, and no others: a rewrite changes only those."""
    body = reading.body
    spelled = {name.casefold(): name for name in datasets}
    common = {body.names[token].casefold() for token in body.common}
    expected = {body.starts[item.key] for scope in body.scopes for item in scope.items if item.name}
    for node in plans.nodes(plan):
        if plans.kind(node) != "UnresolvedRelation":
            continue
        name = ".".join(map(str, plans.sequence(node.multipartIdentifier())))
        at = plans.offset(node) or 0
        if name.casefold() not in spelled and name.casefold() not in common:
            hint = names.suggestion(name, spelled.values()) or f"; there are {', '.join(sorted(spelled.values()))}"
            raise body.source.error(f"there is no dataset {name}{hint if spelled else ''}", at)
        if at not in expected:
            raise body.source.error(f"{name} must be read by name and alias in a FROM clause, as in FROM {name} r", at)


def _check_parameters(reading: BodyReading, plan: plans.Node) -> None:
    body, parameters = reading.body, reading.channel.parameters
    read = {d.name: d for scope in body.scopes for item in scope.items if (d := reading.dataset(item))}
    for index, parameter in enumerate(parameters):
        uses = [token for token in reading.references if reading.parameter(token) == index]
        if not uses:
            _check_misspelt(reading, parameter.name, read.values(), plan)
            reason = f"parameter {parameter.name} is never used: subscriptions would differ in it and find the same"
            raise StatementError(f"{reason}; leave it out", line=1, column=1)
        for dataset in read.values():
            if dataset.column(parameter.name):
                reason = f"parameter {parameter.name} is named like a column of {dataset.name}"
                raise body.error(f"{reason}; call the parameter something else", uses[0])
    for token in reading.references:
        _check_reference(body, token)


def _check_misspelt(reading: BodyReading, parameter: str, read: Iterable[Dataset], plan: plans.Node) -> None:
    """A parameter that is never used is most likely used by a name that is almost its own."""
    for expression in plans.expressions(plan):
        for part in plans.below(expression):
            name = _bare_name(part)
            if name is None or any(dataset.column(name) for dataset in read):
                continue
            if names.suggestion(name, [parameter]):
                reason = f"parameter {parameter} is never used; is it meant by {name}?"
                raise reading.body.source.error(reason, plans.offset(part) or 0)


def _bare_name(expression: plans.Node) -> str | None:
    """The name that an expression is, if it is one alone."""
    if plans.kind(expression) != "UnresolvedAttribute":
        return None
    parts = list(map(str, plans.sequence(expression.nameParts())))
    return parts[0] if len(parts) == 1 else None


def _check_reference(body: Body, token: int) -> None:
    if body.word(token - 1) in {"LIMIT", "OFFSET"}:
        reason = "takes a number, not a parameter; compare row_number() with the parameter instead"
        raise body.error(f"{body.words[token - 1]} {reason}", token)
    scope = body.scope(token)
    if scope is not None and (scope.depth > 1 or (scope.depth and not scope.nested)):
        reason = "is used more than one query deep in a subquery, where Spark cannot see it; write a join instead"
        raise body.error(f"parameter {body.names[token]} {reason}", token)
