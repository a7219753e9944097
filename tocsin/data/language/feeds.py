"""What CREATE FEED says after the feed's name: its dataset, how it is sliced, where it is from, and for whom it is."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import takewhile
from typing import Any, Final

from tocsin.data.language.cursor import WordCursor
from tocsin.data.language.users import users
from tocsin.errors import StatementError
from tocsin.functions import FUNCTION_NAME
from tocsin.model import names
from tocsin.model.terms import Terms
from tocsin.slices.assignment import ASSIGNMENTS

MOST_SLICES: Final = 1024
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_CELL: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


def feed_clauses(cursor: WordCursor) -> dict[str, Any]:
    """Takes a feed's name and all that follows, as the fields of ``CreateFeed``."""
    name = cursor.name("feed")
    cursor.expect("INTO")
    dataset, places = cursor.name("dataset"), dict[str, tuple[int, int]]()
    sliced_by, using = _slicing(cursor, places) if cursor.accept("SLICED") else ((), "")
    slices = None
    if cursor.accept("INTO"):
        slices = cursor.count("a number of slices", MOST_SLICES)
        cursor.choose("SLICES", "SLICE")
    topic = _topic(cursor) if cursor.accept("FROM") else ""
    processed_by = _processing(cursor, places) if cursor.accept("PROCESSED") else ""
    bound = _bound_columns(cursor)
    said = cursor.accept("FOR")
    groups = users(cursor, "PUBLISHERS", "SUBSCRIBERS", "GROUPS") if said else ()
    if cursor.word:
        clauses: dict[str, object] = {
            "SLICED BY": sliced_by or using,
            **({"USING": using} if sliced_by else {}),
            "INTO": slices,
            "FROM KAFKA": topic,
            "PROCESSED BY": processed_by,
            "WITH": bound,
            "FOR": said,
        }
        raise _unexpected_clause(cursor, clauses)
    if topic and (bound or said):
        raise cursor.error("who may publish to a topic is for Kafka to say: leave out WITH and FOR", None)
    if topic and using:
        raise cursor.error("which partition a record is in is for its producer to say: leave out USING", None)
    return {
        "name": name,
        "dataset": dataset,
        "sliced_by": sliced_by,
        "slices": slices,
        "terms": Terms(bound, groups),
        "topic": topic,
        "using": using,
        "processed_by": processed_by,
        "places": places,
    }


def _slicing(cursor: WordCursor, places: dict[str, tuple[int, int]]) -> tuple[tuple[str, ...], str]:
    """The columns, and the assignment in the words of :mod:`tocsin.slices.assignment`; either may be left out."""
    columns: list[str] = []
    if cursor.choose("BY", "USING") == "BY":
        more = True
        while more:
            columns.append(_column(cursor, columns))
            more = cursor.accept(",")
        if not cursor.accept("USING"):
            return tuple(columns), ""
    if cursor.word:
        places["USING"] = cursor.source.place(cursor.word.start)
    return tuple(columns), _assignment(cursor)


def _column(cursor: WordCursor, before: list[str]) -> str:
    place = cursor.word
    name = cursor.name("column")
    if names.find_repeated([*before, name]):
        raise cursor.error(f"column '{name}' occurs twice", place)
    return name


def _assignment(cursor: WordCursor) -> str:
    place = cursor.word
    if place is not None and place.string is not None:
        function = _function(cursor)
        if (module := function.partition(":")[0]) in ASSIGNMENTS:
            raise cursor.error(f"a module of the name {module} cannot be told from the assignment: rename it", place)
        return function
    match cursor.choose("HASH", "MODULO", "RANDOM", "GRID"):
        case "GRID":
            return f"grid:{_cell(cursor)}"
        case name:
            return name.lower()


def _cell(cursor: WordCursor) -> str:
    """The length of a cell's side, in one spelling for each number."""
    cursor.expect("(")
    place = cursor.word
    cell = Decimal(cursor.matching(_CELL, "the length of a cell's side, as in grid(500)"))
    if not cell:
        raise cursor.error("a cell's side is longer than 0: write grid(500), say", place)
    cursor.expect(")")
    return f"{cell.normalize():f}"


def _topic(cursor: WordCursor) -> str:
    cursor.expect("KAFKA")
    place = cursor.word
    topic = cursor.string("a topic")
    if not _TOPIC.fullmatch(topic):
        raise cursor.error("a topic's name has 1 to 249 letters, digits, dots, dashes and underscores", place)
    return topic


def _processing(cursor: WordCursor, places: dict[str, tuple[int, int]]) -> str:
    cursor.expect("BY")
    if cursor.word:
        places["PROCESSED BY"] = cursor.source.place(cursor.word.start)
    return _function(cursor)


def _function(cursor: WordCursor) -> str:
    place = cursor.word
    function = cursor.string("a function")
    if not FUNCTION_NAME.fullmatch(function):
        raise cursor.error("a function is written 'package.module:function'", place)
    return function


def _unexpected_clause(cursor: WordCursor, clauses: dict[str, object]) -> StatementError:
    """The error for a word after these clauses, which come in their order; those before the last taken one cannot."""
    open_ones = list(takewhile(lambda clause: not clauses[clause], reversed(clauses)))[::-1]
    return cursor.unexpected_word(" or ".join(open_ones) or "';'", tuple(clause.split()[0] for clause in open_ones))


def _bound_columns(cursor: WordCursor) -> tuple[str, ...]:
    """``WITH column FROM SUBSCRIBER, ...``, if that comes next."""
    bound: list[str] = []
    more = cursor.accept("WITH")
    while more:
        bound.append(cursor.name("column"))
        cursor.expect("FROM", "SUBSCRIBER")
        more = cursor.accept(",")
    return tuple(bound)
