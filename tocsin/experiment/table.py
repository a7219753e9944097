"""Tables of numbers as CSV files. A row is a struct whose fields bear their meaning, so a column is described once."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, TypeVar

import msgspec

CELL = "cell"
"""The first column of every table: the part of the experiment that made the row."""

_DIGITS = 8


class Row(msgspec.Struct, frozen=True):
    """Base of the rows. A subclass is a table: ``Meta(description=…)`` describes a column, the docstring the table.

    ``TABLE`` names the table's file; without it, that is called by the class.
    """

    TABLE: ClassVar[str] = ""


R = TypeVar("R", bound=Row)


def file_of(kind: type[Row]) -> str:
    """The name of a table's file."""
    return f"{kind.TABLE or f'{kind.__name__.lower()}s'}.csv"


def columns(kind: type[Row]) -> dict[str, str]:
    """The columns of a table, and what each means."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    return {field.encode_name: _description(field.type) for field in info.fields}


def append(path: Path, kind: type[R], cell: str, rows: Iterable[R]) -> None:
    """Adds the rows of a cell, and the header to a file that is new."""
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow([CELL, *columns(kind)])
        writer.writerows([cell, *map(_text, msgspec.structs.astuple(row))] for row in rows)


def read(path: Path, kind: type[R]) -> Iterator[tuple[str, R]]:
    """The rows with their cells; none if there is no such file."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", newline="") as file:
        for found in csv.DictReader(file):
            cell = found.pop(CELL)
            yield cell, msgspec.convert(found, kind, strict=False)


def _text(value: object) -> object:
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else value


def _description(kind: msgspec.inspect.Type) -> str:
    extra = kind.extra_json_schema if isinstance(kind, msgspec.inspect.Metadata) else None
    return str((extra or {}).get("description", ""))
