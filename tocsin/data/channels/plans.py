"""Spark's logical plans, looked into from Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

# Nodes of Spark's plans and expressions live in its virtual machine and have no Python types.
Node = Any


def parsed(spark: SparkSession, statement: str) -> Node:
    """The plan of a statement in which nothing has been looked up yet."""
    return spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)


def analysed(frame: DataFrame) -> Node:
    """The plan of a query in which everything is resolved."""
    return frame._jdf.queryExecution().analyzed()


def optimised(frame: DataFrame) -> Node:
    """The plan of a query as Spark simplified it."""
    return frame._jdf.queryExecution().optimizedPlan()


def prepared(frame: DataFrame) -> str:
    """The plan of a query as it will run."""
    return str(frame._jdf.queryExecution().executedPlan())


def kind(node: Node) -> str:
    """What a node is: the name of its class."""
    return str(node.getClass().getSimpleName())


def nodes(plan: Node) -> Iterator[Node]:
    """All nodes of a plan, those of its subqueries and common table expressions included."""
    yield plan
    for below in (*sequence(plan.innerChildren()), *sequence(plan.children())):
        yield from nodes(below)


def expressions(plan: Node) -> Iterator[Node]:
    """The expressions at the nodes of a plan, each as a whole."""
    for node in nodes(plan):
        yield from sequence(node.expressions())


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
