"""The statements of an application file, parsed and checked as far as one statement can be by itself."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from tocsin.errors import StatementError
from tocsin.model import names
from tocsin.model.terms import Terms
from tocsin.schema.definitions import Channel, Column, Dataset, DatasetKind, Feed
from tocsin.schema.types import INTEGER_BITS, Kind
from tocsin.slices.assignment import DEFAULT

_NUMBERS: Final = frozenset({*INTEGER_BITS, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL})


class Thing(StrEnum):
    """What can be created and dropped."""

    DATASET = "dataset"
    FEED = "feed"
    CHANNEL = "channel"


class Listing(StrEnum):
    """What can be shown as a list."""

    DATASETS = "datasets"
    FEEDS = "feeds"
    CHANNELS = "channels"
    SUBSCRIPTIONS = "subscriptions"
    BROKERS = "brokers"


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A statement's text, without its semicolon, and where in the file it begins (from 1)."""

    line: int
    column: int
    text: str

    def error(self, reason: str) -> StatementError:
        """An error about this statement as a whole."""
        return StatementError(reason, line=self.line, column=self.column, statement=self.text)


class CreateDataset(Placed, frozen=True, kw_only=True):
    """``CREATE [OR REPLACE] [KEYED | REFERENCE] DATASET ...``"""

    definition: Dataset
    or_replace: bool = False
    if_not_exists: bool = False


class CreateFeed(Placed, frozen=True, kw_only=True):
    """``CREATE [OR REPLACE] FEED ...``; what it leaves open is settled by :meth:`feed`.

    ``places`` has the lines and columns at which it names what runs: an assignment (USING), a function (PROCESSED BY).
    """

    name: str
    dataset: str
    sliced_by: tuple[str, ...] = ()
    slices: int | None = None
    terms: Terms = Terms(groups=())
    topic: str = ""
    using: str = ""
    processed_by: str = ""
    places: dict[str, tuple[int, int]] = {}
    or_replace: bool = False
    if_not_exists: bool = False

    def feed(self, dataset: Dataset, default_slices: int) -> Feed:
        """The feed meant, into ``dataset``: by default sliced by the primary key, into ``default_slices``."""
        if dataset.kind is DatasetKind.REFERENCE:
            raise self.error(f"dataset {dataset.name} is a REFERENCE dataset: fill it with LOAD DATASET, not by a feed")
        return Feed(
            self.name,
            dataset.name,
            ", ".join(column.name for column in self._slicing(dataset)),
            self.slices or default_slices,
            self._terms(dataset),
            self.topic,
            self.using or DEFAULT,
            self.processed_by,
        )

    def error_at(self, clause: str, reason: str) -> StatementError:
        """An error about what a clause names."""
        line, column = self.places.get(clause, (self.line, self.column))
        return StatementError(reason, line=line, column=column, statement=self.text)

    def _slicing(self, dataset: Dataset) -> list[Column]:
        """The columns that the slices follow from, which the assignment can do something with."""
        columns = [self._slicing_column(dataset, name) for name in self.sliced_by]
        if self.using == "random":
            return []
        if not columns and dataset.primary_key is not None:
            columns = [self._slicing_column(dataset, dataset.primary_key)]
        if not columns:
            raise self.error(f"dataset {dataset.name} has no primary key: say SLICED BY with one of its columns")
        if fault := _why_unsuited(self.using, columns):
            raise self.error_at("USING", fault)
        return columns

    def _slicing_column(self, dataset: Dataset, name: str) -> Column:
        column = dataset.column(name)
        if column is None:
            hint = names.suggestion(name, [known.name for known in dataset.columns])
            raise self.error(f"dataset {dataset.name} has no column '{name}' to slice by{hint}")
        if not column.type.scalar:
            raise self.error(f"column '{name}' is {column.type.ddl}: slice by a column of single values")
        return column

    def _terms(self, dataset: Dataset) -> Terms:
        """The terms, with bound columns as the dataset spells them."""
        bound = [self._bound_column(dataset, name) for name in self.terms.bound]
        if twice := names.find_repeated(bound):
            raise self.error(f"column '{twice}' is bound to the subscriber twice")
        return Terms(tuple(sorted(bound)), self.terms.groups)

    def _bound_column(self, dataset: Dataset, name: str) -> str:
        column = dataset.column(name)
        if column is None:
            hint = names.suggestion(name, [known.name for known in dataset.columns])
            raise self.error(f"dataset {dataset.name} has no column '{name}' to bind to the subscriber{hint}")
        if column.type.kind is not Kind.STRING:
            raise self.error(f"column '{name}' is {column.type.ddl}: a subscriber's name is a STRING")
        return column.name


def _why_unsuited(using: str, columns: Sequence[Column]) -> str:
    """Why an assignment can do nothing with these columns, if it cannot."""
    said = ", ".join(f"{column.name} {column.type.ddl}" for column in columns)
    if using == "modulo" and not (len(columns) == 1 and all(map(_is_whole, columns))):
        return f"modulo goes by one column of whole numbers, not by {said}"
    numbers = all(column.type.kind in _NUMBERS for column in columns)
    if using.startswith("grid:") and not (len(columns) == 2 and numbers):
        return f"grid goes by two columns of numbers, not by {said}"
    return ""


def _is_whole(column: Column) -> bool:
    return column.type.kind in INTEGER_BITS or (column.type.kind is Kind.DECIMAL and column.type.scale == 0)


class CreateChannel(Placed, frozen=True, kw_only=True):
    """``CREATE [OR REPLACE] REPETITIVE | CONTINUOUS CHANNEL ...``; the body begins at its own line and column."""

    definition: Channel
    body_line: int
    body_column: int
    or_replace: bool = False
    if_not_exists: bool = False


class LoadDataset(Placed, frozen=True, kw_only=True):
    """``LOAD DATASET dataset FROM 'path'``"""

    dataset: str
    path: str


class Drop(Placed, frozen=True, kw_only=True):
    """``DROP DATASET | FEED | CHANNEL [IF EXISTS] name``"""

    what: Thing
    name: str
    if_exists: bool = False


class Show(Placed, frozen=True, kw_only=True):
    """``SHOW DATASETS | FEEDS | CHANNELS | SUBSCRIPTIONS | BROKERS``"""

    what: Listing


class Describe(Placed, frozen=True, kw_only=True):
    """``DESCRIBE DATASET | FEED | CHANNEL name``"""

    what: Thing
    name: str


Statement = CreateDataset | CreateFeed | CreateChannel | LoadDataset | Drop | Show | Describe
