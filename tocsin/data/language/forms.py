"""The statements of an application file, parsed and checked as far as one statement can be by itself."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tocsin.errors import StatementError
from tocsin.model import names
from tocsin.model.terms import Terms
from tocsin.schema.definitions import Channel, Dataset, DatasetKind, Feed
from tocsin.schema.types import Kind


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
    """``CREATE [OR REPLACE] FEED ...``; what it leaves open is settled by :meth:`feed`."""

    name: str
    dataset: str
    sliced_by: str | None = None
    slices: int | None = None
    terms: Terms = Terms(groups=())
    or_replace: bool = False
    if_not_exists: bool = False

    def feed(self, dataset: Dataset, default_slices: int) -> Feed:
        """The feed meant, into ``dataset``: by default sliced by the primary key, into ``default_slices``."""
        if dataset.kind is DatasetKind.REFERENCE:
            raise self.error(f"dataset {dataset.name} is a REFERENCE dataset: fill it with LOAD DATASET, not by a feed")
        name = self.sliced_by or dataset.primary_key
        if name is None:
            raise self.error(f"dataset {dataset.name} has no primary key: say SLICED BY with one of its columns")
        column = dataset.column(name)
        if column is None:
            hint = names.suggestion(name, [known.name for known in dataset.columns])
            raise self.error(f"dataset {dataset.name} has no column '{name}' to slice by{hint}")
        if not column.type.scalar:
            raise self.error(f"column '{name}' is {column.type.ddl}: slice by a column of single values")
        return Feed(self.name, dataset.name, column.name, self.slices or default_slices, self._terms(dataset))

    def _terms(self, dataset: Dataset) -> Terms:
        """The terms, with bound columns as the dataset spells them."""
        bound = [self._bound(dataset, name) for name in self.terms.bound]
        if twice := names.find_repeated(bound):
            raise self.error(f"column '{twice}' is bound to the subscriber twice")
        return Terms(tuple(sorted(bound)), self.terms.groups)

    def _bound(self, dataset: Dataset, name: str) -> str:
        column = dataset.column(name)
        if column is None:
            hint = names.suggestion(name, [known.name for known in dataset.columns])
            raise self.error(f"dataset {dataset.name} has no column '{name}' to bind to the subscriber{hint}")
        if column.type.kind is not Kind.STRING:
            raise self.error(f"column '{name}' is {column.type.ddl}: a subscriber's name is a STRING")
        return column.name


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
