"""Spark's logical plans, looked into from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

# Nodes of Spark's plans and expressions live in its virtual machine and have no Python types.
Node = Any


def parse(spark: SparkSession, statement: str) -> Node:
    """The plan of a statement in which nothing has been looked up yet."""
    return spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)


def analyse(spark: SparkSession, plan: Node) -> Node:
    """A parsed plan with everything in it resolved. Nothing is carried out, whatever the statement."""
    machine: Any = spark._jvm
    skipping = machine.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    return spark._jsparkSession.sessionState().executePlan(plan, skipping).analyzed()


def columns(plan: Node) -> list[str]:
    """The names of the columns of a plan's rows."""
    return [str(attribute.name()) for attribute in sequence(plan.output())]


def optimise(frame: DataFrame) -> Node:
    """The plan of a query as Spark simplified it."""
    return frame._jdf.queryExecution().optimizedPlan()


def prepare(frame: DataFrame) -> str:
    """The plan of a query as it will run."""
    return str(frame._jdf.queryExecution().executedPlan())


def kind(node: Node) -> str:
    """What a node is: the name of its class."""
    return str(node.getClass().getSimpleName())


def nodes(plan: Node, inside: Callable[[Node], bool] = lambda _: True) -> Iterator[Node]:
    """All nodes of a plan, those of its subqueries and common table expressions included.

    Args:
        inside: whether to look at what is below a node.
    """
    yield plan
    if inside(plan):
        for below in (*sequence(plan.innerChildren()), *sequence(plan.children())):
            yield from nodes(below, inside)


def expressions(plan: Node, inside: Callable[[Node], bool] = lambda _: True) -> Iterator[Node]:
    """The expressions at the nodes of a plan, each as a whole."""
    for node in nodes(plan, inside):
        yield from sequence(node.expressions())


def options(expression: Node) -> list[str]:
    """The names of the options that a function was given."""
    return [str(name) for name in sequence(expression.options().keys().toSeq())]


def below(expression: Node) -> Iterator[Node]:
    """An expression and all inside it, but for the plans of subqueries."""
    yield expression
    for child in children(expression):
        yield from below(child)


def children(node: Node) -> list[Node]:
    """What is directly below a node."""
    return sequence(node.children())


def sequence(scala: Node) -> list[Node]:
    """A Scala sequence as a list."""
    return [scala.apply(i) for i in range(scala.size())]


def offset(node: Node) -> int | None:
    """Where in the statement a node was written, if that is known."""
    start = node.origin().startIndex()
    return int(start.get()) if start.isDefined() else None


def written_cast(spark: SparkSession) -> Node:
    """The tag that tells a CAST that was written from one that Spark put in."""
    machine: Any = spark._jvm
    casts = getattr(machine.org.apache.spark.sql.catalyst.expressions, "Cast$")
    return getattr(casts, "MODULE$").USER_SPECIFIED_CAST()
