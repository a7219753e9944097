"""Spark's errors in the words of someone who writes a channel, and at their place in the body."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tocsin.data.compiler.patch import Rendered
from tocsin.data.compiler.reading import BodyReading
from tocsin.data.compiler.text import Text
from tocsin.errors import StatementError

_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_LONGEST = 300
# What Spark cannot do for all subscriptions at once although it can for one, and what to write instead.
_INSTEAD = (
    (
        "MISSING_GROUP_BY",
        "a parameter stands beside an aggregate without GROUP BY; aggregate in a subquery in FROM, and use it above",
    ),
    (
        "ACCESSING_OUTER_QUERY_COLUMN_IS_NOT_ALLOWED",
        "a parameter is used in a subquery on the optional side of an outer join, or below ROLLUP, CUBE or GROUPING "
        "SETS; use it in the ON of the join, or write one SELECT for each grouping",
    ),
    (
        "Unable to rewrite domain join",
        "parameters are used where Spark cannot bring those of all, as inside INTERSECT or EXCEPT; write EXISTS or "
        "NOT EXISTS, or a join",
    ),
)
_GENERATED = (
    (re.compile(r"`?\b__new_(\w+)`?"), r"\1"),
    (re.compile(r"(`?\b__(s|row\d+)`?\.)?`?\b__p\d+`?(#\d+)?"), "a parameter"),
    (re.compile(r"`?\b__\w+`?(#\d+L?)?"), "a subscription"),
    (re.compile(r"#\d+L?\b"), ""),
    (re.compile(r"\bouter\(([^()]*)\)"), r"\1"),
)


def syntax(error: PySparkException) -> StatementError:
    """The refusal of a body that Spark cannot parse."""
    line, column = _position(error)
    return StatementError(sentence(error), line=line, column=column + 1)


def misplaced_parameter(error: PySparkException, rendered: Rendered, reading: BodyReading) -> StatementError:
    """The refusal of a body that Spark can parse, but not with the parameters' values in it."""
    line, column = _position(error)
    starts = [0, *(found.end() for found in re.finditer("\n", rendered.text))]
    at = rendered.origin(starts[line - 1] + column)
    # Spark may notice only at the next word.
    token = max((i for i in reading.references if reading.body.starts[i] <= at), default=0)
    return reading.body.error(
        f"{reading.body.names[token]} is a parameter and cannot be the name of anything else", token
    )


def for_one(error: PySparkException, rendered: Rendered, body: Text) -> StatementError:
    """The refusal of a body, at the place that Spark's complaint about its ``rendered`` form is about."""
    start = next((context.startIndex() for context in error.getQueryContext()), 0)
    return body.source.error(sentence(error), rendered.origin(start))


def _position(error: PySparkException) -> tuple[int, int]:
    """The line, from 1, and the column, from 0, of an error of Spark's parser."""
    found = _POSITION.search(str(error))
    return (int(found[1]), int(found[2])) if found else (1, 0)


def for_all(error: PySparkException | Py4JJavaError, start: int, rewritten: Rendered, body: Text) -> StatementError:
    """The refusal of a statement for all subscriptions, in which ``rewritten`` begins at ``start``."""
    offset = 0
    if isinstance(error, PySparkException):
        message = sentence(error)
        offset = next((context.startIndex() for context in error.getQueryContext()), start) - start
    else:
        message = clean(str(error.java_exception.getMessage()))
    reason = next((text for mark, text in _INSTEAD if mark in str(error)), message)
    place = rewritten.origin(max(offset, 0))
    return body.source.error(f"this cannot run for all subscriptions at once: {reason}", place)


def sentence(error: PySparkException) -> str:
    """What is wrong, without Spark's codes, plans and anything that is not in the body."""
    parameters = error.getMessageParameters() or {}
    condition = error.getCondition() or ""
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = _plain(parameters.get("objectName", ""))
        close = _plain(parameters.get("proposal", "").split(", ")[0])
        return f"there is no column {name}" + (f" (did you mean {close}?)" if close else "")
    if condition == "UNRESOLVED_ROUTINE":
        return f"there is no function {_plain(parameters.get('routineName', ''))}"
    if condition == "PARSE_SYNTAX_ERROR":
        return f"syntax error at {parameters.get('error', '')}{parameters.get('hint', '')}"
    return clean(str(error))


def clean(message: str) -> str:
    """The first sentence of a message of Spark's, with nothing generated in it."""
    first = message.strip().split("\n")[0].split(" SQLSTATE")[0].split("; line ")[0]
    text = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", first).strip().rstrip(";:. ")
    for generated, meant in _GENERATED:
        text = generated.sub(meant, text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _plain(name: str) -> str:
    return name.replace("`", "")
