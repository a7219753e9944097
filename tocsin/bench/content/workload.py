"""What is matched: interests and quotes of the PADRES evaluation, in files that every contestant reads.

A line is a subscription or a publication, and its fields are parted by tabs. A publication has for each attribute the
name, the kind of the value (``s`` for strings, ``n`` for numbers) and the value, a subscription for each condition the
name, the operator, the kind and the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final

from tocsin.apps.stocks.interests import draw_interest
from tocsin.apps.stocks.quotes import Quotes
from tocsin.content.constraint import FIRST, LAST, START
from tocsin.content.filter import Filter, conjunction
from tocsin.content.predicate import Comparison, Predicate
from tocsin.content.values import Publication, Value
from tocsin.errors import InvalidError

PUBLICATIONS: Final = 1000
"""So many different ones are matched, again and again."""

# a-tree begins with the condition that is written first, so that what few publications fulfil had better be there.
_LAST_WRITTEN: Final = "class"
_FIRST_WRITTEN: Final = "symbol"


@dataclass(frozen=True)
class ContentWorkload:
    """The files. A subscription's number is that of its line, from 0 on."""

    subscriptions: Path
    publications: Path


def write_workload(directory: Path, quotes: Quotes, subscriptions: int, seed: int) -> ContentWorkload:
    """Draws subscriptions and publications, and writes them down."""
    random = Random(seed)
    symbols = quotes.symbols
    drawn = (random.choice(quotes.by_symbol[random.choice(symbols)]) for _ in range(PUBLICATIONS))
    workload = ContentWorkload(directory / "subscriptions", directory / "publications")
    _write(workload.publications, (_publication_fields(publication) for publication in drawn))
    filters = (draw_interest(random, quotes) for _ in range(subscriptions))
    _write(workload.subscriptions, (_subscription_fields(filter) for filter in filters))
    return workload


def read_subscriptions(path: Path, count: int) -> Iterator[Filter]:
    """The first ``count`` subscriptions."""
    for fields in _read(path, count):
        conditions = zip(*(fields[place::4] for place in range(4)), strict=True)
        yield conjunction(
            Predicate(name, Comparison(operator), (_value(kind, text),)) for name, operator, kind, text in conditions
        )


def read_publications(path: Path) -> list[Publication]:
    """All publications."""
    return [
        {name: _value(kind, text) for name, kind, text in zip(fields[::3], fields[1::3], fields[2::3], strict=True)}
        for fields in _read(path)
    ]


def conditions(filter: Filter) -> Iterator[tuple[str, Comparison, Value]]:
    """What a filter asks for, if there are no alternatives in it."""
    for name, wanted in filter.constraints:
        [piece] = wanted.pieces
        if piece.is_point:
            yield name, Comparison.EQUAL, piece.low[1]
            continue
        if piece.low not in (FIRST, START):
            yield name, Comparison.ABOVE if piece.low[2] else Comparison.AT_LEAST, piece.low[1]
        if piece.high != LAST:
            yield name, Comparison.UP_TO if piece.high[2] else Comparison.BELOW, piece.high[1]


def _publication_fields(publication: Publication) -> list[str]:
    return [field for name, value in publication.items() for field in (name, *_fields(value))]


def _subscription_fields(filter: Filter) -> list[str]:
    ordered = sorted(conditions(filter), key=lambda one: (one[0] == _LAST_WRITTEN, one[0] != _FIRST_WRITTEN))
    return [field for name, operator, value in ordered for field in (name, operator.value, *_fields(value))]


def _fields(value: Value) -> tuple[str, str]:
    # Without an exponent, and with no more digits than tell the number from its neighbours.
    return ("s", value) if isinstance(value, str) else ("n", format(Decimal(repr(float(value))), "f"))


def _value(kind: str, text: str) -> Value:
    return text if kind == "s" else float(text)


def _write(path: Path, lines: Iterable[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for fields in lines:
            if any(separator in field for field in fields for separator in "\t\r\n'\""):
                raise InvalidError(f"quotes with tabs, line ends or quotation marks are not measured: {fields}")
            file.write("\t".join(fields) + "\n")


def _read(path: Path, count: int | None = None) -> Iterator[list[str]]:
    with path.open(encoding="utf-8") as file:
        for line in islice(file, count):
            yield line.rstrip("\n").split("\t")
