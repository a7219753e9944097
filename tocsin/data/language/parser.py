"""From the text of an application file to its statements.

::

    CREATE [OR REPLACE] [KEYED | REFERENCE] DATASET [IF NOT EXISTS] name (column TYPE, ...) [PRIMARY KEY column]
    CREATE [OR REPLACE] FEED [IF NOT EXISTS] name INTO dataset
        [SLICED [BY column, ...] [USING HASH | MODULO | RANDOM | GRID(cell) | 'module:function']] [INTO n SLICES]
        [FROM KAFKA 'topic'] [PROCESSED BY 'module:function']
        [WITH column FROM SUBSCRIBER, ...] [FOR PUBLISHERS | FOR SUBSCRIBERS | FOR GROUPS ('group', ...)]
    CREATE [OR REPLACE] REPETITIVE CHANNEL [IF NOT EXISTS] name(parameter TYPE [FROM SUBSCRIBER], ...)
        PERIOD n SECONDS [FOR SUBSCRIBERS | FOR GROUPS ('group', ...)] AS query
    CREATE [OR REPLACE] CONTINUOUS CHANNEL [IF NOT EXISTS] name(parameter TYPE [FROM SUBSCRIBER], ...)
        [FOR SUBSCRIBERS | FOR GROUPS ('group', ...)] AS query
    LOAD DATASET name FROM 'path'
    DROP DATASET | FEED | CHANNEL [IF EXISTS] name
    SHOW DATASETS | FEEDS | CHANNELS | SUBSCRIPTIONS | BROKERS
    DESCRIBE DATASET | FEED | CHANNEL name

Words are recognised in any case. A period is counted in MILLISECONDS, SECONDS, MINUTES or HOURS, or given as BAD does:
``PERIOD duration("PT10S")``.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec

from tocsin.data.language.cursor import WordCursor
from tocsin.data.language.feeds import feed_clauses
from tocsin.data.language.forms import (
    CreateChannel,
    CreateDataset,
    CreateFeed,
    Describe,
    Drop,
    Listing,
    LoadDataset,
    Show,
    Statement,
    Thing,
)
from tocsin.data.language.source import Source
from tocsin.data.language.users import users
from tocsin.model import names
from tocsin.model.terms import Terms
from tocsin.schema.definitions import Channel, ChannelKind, Column, Dataset, DatasetKind
from tocsin.schema.types import Kind

__all__ = [
    "CreateChannel",
    "CreateDataset",
    "CreateFeed",
    "Describe",
    "Drop",
    "Listing",
    "LoadDataset",
    "Show",
    "Statement",
    "Thing",
    "parse",
]

LONGEST_PERIOD: Final = 366 * 24 * 3600
_UNITS: Final = {"MILLISECOND": Decimal("0.001"), "SECOND": Decimal(1), "MINUTE": Decimal(60), "HOUR": Decimal(3600)}
_NUMBER: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


def parse(text: str) -> list[Statement]:
    """The statements of an application file, in order; StatementError at the first thing that is not one."""
    source = Source(text)
    return [_statement(WordCursor(source, words)) for words in source.statements()]


def _statement(cursor: WordCursor) -> Statement:
    statement: Statement
    match cursor.choose("CREATE", "LOAD", "DROP", "SHOW", "DESCRIBE"):
        case "CREATE":
            statement = _create(cursor)
        case "LOAD":
            statement = _load(cursor)
        case "DROP":
            what = _thing(cursor)
            if_exists = cursor.accept("IF", "EXISTS")
            statement = Drop(what=what, if_exists=if_exists, name=cursor.name(what), **_place(cursor))
        case "SHOW":
            listing = Listing(cursor.choose(*(listing.upper() for listing in Listing)).lower())
            statement = Show(what=listing, **_place(cursor))
        case _:
            what = _thing(cursor)
            statement = Describe(what=what, name=cursor.name(what), **_place(cursor))
    cursor.end()
    return statement


def _place(cursor: WordCursor) -> dict[str, Any]:
    line, column = cursor.place
    return {"line": line, "column": column, "text": cursor.text}


def _thing(cursor: WordCursor) -> Thing:
    return Thing(cursor.choose(*(thing.upper() for thing in Thing)).lower())


def _load(cursor: WordCursor) -> LoadDataset:
    cursor.expect("DATASET")
    name = cursor.name("dataset")
    cursor.expect("FROM")
    return LoadDataset(dataset=name, path=cursor.string("a path"), **_place(cursor))


def _create(cursor: WordCursor) -> CreateDataset | CreateFeed | CreateChannel:
    or_replace = cursor.accept("OR", "REPLACE")
    if cursor.word and cursor.word.text.upper() == "CHANNEL":
        raise cursor.error("say which: REPETITIVE CHANNEL or CONTINUOUS CHANNEL", cursor.word)
    match cursor.choose("DATASET", "KEYED", "REFERENCE", "FEED", "REPETITIVE", "CONTINUOUS"):
        case "DATASET":
            return _dataset(cursor, DatasetKind.APPEND, or_replace)
        case "FEED":
            return _feed(cursor, or_replace)
        case ("KEYED" | "REFERENCE") as kind:
            cursor.expect("DATASET")
            return _dataset(cursor, DatasetKind(kind.lower()), or_replace)
        case kind:
            cursor.expect("CHANNEL")
            return _channel(cursor, ChannelKind(kind.lower()), or_replace)


def _existence(cursor: WordCursor, or_replace: bool) -> dict[str, Any]:
    """What to do when it exists: ``IF NOT EXISTS`` is read here, and may not go together with ``OR REPLACE``."""
    place = cursor.word
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise cursor.error("OR REPLACE and IF NOT EXISTS contradict each other; leave one out", place)
    return {"or_replace": or_replace, "if_not_exists": if_not_exists}


def _dataset(cursor: WordCursor, kind: DatasetKind, or_replace: bool) -> CreateDataset:
    existence = _existence(cursor, or_replace)
    name = cursor.name("dataset")
    opening = cursor.word
    columns = cursor.columns("column")
    if not columns:
        raise cursor.error(f"dataset {name} has no columns; write (name TYPE, ...)", opening)
    definition = Dataset(name, kind, columns)
    if kind is DatasetKind.KEYED or cursor.word:
        if not cursor.accept("PRIMARY", "KEY"):
            raise cursor.unexpected_word("PRIMARY KEY", ("PRIMARY",))
        definition = msgspec.structs.replace(definition, primary_key=_primary_key(cursor, definition))
    return CreateDataset(definition=definition, **existence, **_place(cursor))


def _primary_key(cursor: WordCursor, dataset: Dataset) -> str:
    place = cursor.word
    name = cursor.name("column")
    column = dataset.column(name)
    if column is None:
        hint = names.suggestion(name, [known.name for known in dataset.columns])
        raise cursor.error(f"PRIMARY KEY '{name}' is not a column of {dataset.name}{hint}", place)
    if not column.type.scalar:
        raise cursor.error(f"PRIMARY KEY '{name}' is {column.type.ddl}: a key is a single value", place)
    return column.name


def _feed(cursor: WordCursor, or_replace: bool) -> CreateFeed:
    existence = _existence(cursor, or_replace)
    return CreateFeed(**existence, **feed_clauses(cursor), **_place(cursor))


def _channel(cursor: WordCursor, kind: ChannelKind, or_replace: bool) -> CreateChannel:
    existence = _existence(cursor, or_replace)
    name = cursor.name("channel")
    parameters, bound = _parameters(cursor)
    period = _period(cursor) if kind is ChannelKind.REPETITIVE else None
    if period is None and cursor.word and cursor.word.text.upper() == "PERIOD":
        raise cursor.error("a CONTINUOUS channel runs as publications arrive and has no PERIOD", cursor.word)
    groups = users(cursor, "SUBSCRIBERS", "GROUPS") if cursor.accept("FOR") else None
    cursor.expect("AS")
    body = cursor.rest()
    line, column = cursor.source.place(body.start)
    return CreateChannel(
        definition=Channel(name, kind, parameters, body.text, period, Terms(bound, groups)),
        body_line=line,
        body_column=column,
        **existence,
        **_place(cursor),
    )


def _parameters(cursor: WordCursor) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """The parameters, and which of them are the subscriber's name."""
    opening, bound = cursor.word, list[str]()

    def bind(parameter: Column) -> None:
        place = cursor.word
        if cursor.accept("FROM"):
            cursor.expect("SUBSCRIBER")
            if parameter.type.kind is not Kind.STRING:
                reason = f"parameter '{parameter.name}' is {parameter.type.ddl}: a subscriber's name is a STRING"
                raise cursor.error(reason, place)
            bound.append(parameter.name)

    parameters = cursor.columns("parameter", bind)
    for parameter in parameters:
        if not parameter.type.scalar:
            reason = f"parameter '{parameter.name}' is {parameter.type.ddl}: a parameter is a single value"
            raise cursor.error(reason, opening)
    return parameters, tuple(bound)


def _period(cursor: WordCursor) -> float:
    cursor.expect("PERIOD")
    place = cursor.word
    seconds = _duration(cursor) if cursor.accept("DURATION", "(") else _amount(cursor)
    if seconds <= 0 or seconds > LONGEST_PERIOD or seconds * 1000 % 1:
        reason = f"a period is a whole number of milliseconds, from 1 millisecond to {LONGEST_PERIOD} seconds"
        raise cursor.error(f"{reason}, not {seconds.normalize():f} seconds", place)
    return float(seconds)


def _amount(cursor: WordCursor) -> Decimal:
    """A number and its unit, in seconds."""
    number = cursor.matching(_NUMBER, "a positive number")
    for unit, seconds in _UNITS.items():
        if cursor.accept(unit) or cursor.accept(f"{unit}S"):
            return Decimal(number) * seconds
    raise cursor.unexpected_word("MILLISECONDS, SECONDS, MINUTES or HOURS", tuple(f"{unit}S" for unit in _UNITS))


def _duration(cursor: WordCursor) -> Decimal:
    """The rest of BAD's ``duration("PT10S")``, in seconds."""
    place = cursor.word
    text = cursor.string("an ISO 8601 duration")
    cursor.expect(")")
    try:
        length = msgspec.convert(text, timedelta)
    except msgspec.ValidationError:
        raise cursor.error('expected an ISO 8601 duration such as "PT10S"', place) from None
    return Decimal(length // timedelta(microseconds=1)) / 1_000_000
