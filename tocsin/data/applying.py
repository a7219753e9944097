"""Application files carried out, statement by statement."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tocsin.data.catalog import Catalog
from tocsin.data.listing import described, listed
from tocsin.data.sql.forms import (
    CreateChannel,
    CreateDataset,
    CreateFeed,
    Describe,
    Drop,
    LoadDataset,
    Show,
    Statement,
    Thing,
)
from tocsin.data.sql.statements import parse
from tocsin.errors import ConflictError, InvalidError, NotFoundError, StatementError
from tocsin.model.definitions import Channel, Dataset, Definition, Feed
from tocsin.model.messages import Action, Outcome


class Applier:
    """Carries statements out on a catalog.

    A file is parsed as a whole first, so that one with a syntax error changes nothing. After that each statement stands
    for itself: those before a refused one have been carried out, and applying the corrected file again does the rest.
    """

    def __init__(self, catalog: Catalog, default_slices: int) -> None:
        self._catalog, self._default_slices = catalog, default_slices

    def apply(self, text: str, directory: Path | None) -> list[Outcome]:
        """Carries out a file; paths in it are relative to ``directory``, without which nothing is loaded."""
        statements = parse(text)
        with self._catalog.changing:
            return [self._carried_out(statement, directory) for statement in statements]

    def _carried_out(self, statement: Statement, directory: Path | None) -> Outcome:
        try:
            return self._outcome(statement, directory)
        except StatementError:
            raise
        except (ConflictError, InvalidError, NotFoundError) as error:
            raise statement.error(str(error)) from None

    def _outcome(self, statement: Statement, directory: Path | None) -> Outcome:
        match statement:
            case CreateDataset() | CreateFeed() | CreateChannel():
                return self._create(statement)
            case LoadDataset():
                return self._load(statement, directory)
            case Drop():
                return self._drop(statement)
            case Show():
                return Outcome(f"show {statement.what}", "shown", rows=listed(self._catalog, statement.what))
            case Describe():
                rows = described(self._catalog, statement.what, statement.name)
                return Outcome(f"{statement.what} {statement.name}", "shown", rows=rows)

    def _create(self, statement: CreateDataset | CreateFeed | CreateChannel) -> Outcome:
        definition = self._definition(statement)
        existing = self._existing(definition)
        title = f"{_word(definition)} {definition.name}"
        if existing is not None and existing.name != definition.name:
            raise ConflictError(f"{title} is written {existing.name} so far; names differ in more than case")
        if existing is not None and _same(existing, definition):
            return Outcome(title, "unchanged")
        if existing is not None and statement.if_not_exists:
            return Outcome(title, "unchanged", "exists with another definition, which IF NOT EXISTS leaves alone")
        if existing is not None and not statement.or_replace:
            word = _word(definition).upper()
            return Outcome(title, "changed", f"differs from what exists; say CREATE OR REPLACE {word} to replace it")
        self._put(statement, definition)
        action: Action = "created" if existing is None else "replaced"
        return Outcome(title, action)

    def _definition(self, statement: CreateDataset | CreateFeed | CreateChannel) -> Definition:
        if isinstance(statement, CreateFeed):
            return statement.feed(self._catalog.dataset(statement.dataset), self._default_slices)
        return statement.definition

    def _existing(self, definition: Definition) -> Definition | None:
        catalog = self._catalog
        feeds = {name: pipeline.feed for name, pipeline in catalog.pipelines.items()}
        known: dict[str, Mapping[str, Definition]]
        known = {"dataset": catalog.datasets, "feed": feeds, "channel": catalog.channels}
        folded = definition.name.casefold()
        return next((d for name, d in known[_word(definition)].items() if name.casefold() == folded), None)

    def _put(self, statement: CreateDataset | CreateFeed | CreateChannel, definition: Definition) -> None:
        match definition:
            case Dataset():
                self._catalog.create_dataset(definition)
            case Feed():
                self._catalog.create_feed(definition)
            case Channel():
                self._create_channel(statement, definition)

    def _create_channel(self, statement: CreateDataset | CreateFeed | CreateChannel, channel: Channel) -> None:
        try:
            self._catalog.create_channel(channel)
        except StatementError as error:
            assert isinstance(statement, CreateChannel)
            raise _placed(error, statement) from None

    def _load(self, statement: LoadDataset, directory: Path | None) -> Outcome:
        title = f"dataset {statement.dataset}"
        if directory is None:
            raise statement.error(
                "LOAD names a file of yours, which the server does not read: use tocsin apply, or send the file to "
                f"POST /datasets/{statement.dataset}/load"
            )
        rows = self._catalog.load(statement.dataset, directory / statement.path)
        if rows is None:
            return Outcome(title, "unchanged", "holds that file already")
        return Outcome(title, "loaded", f"{rows:,} rows")

    def _drop(self, statement: Drop) -> Outcome:
        title = f"{statement.what} {statement.name}"
        drop = {
            Thing.DATASET: self._catalog.drop_dataset,
            Thing.FEED: self._catalog.drop_feed,
            Thing.CHANNEL: self._catalog.drop_channel,
        }[statement.what]
        try:
            drop(statement.name)
        except NotFoundError:
            if not statement.if_exists:
                raise
            return Outcome(title, "unchanged", "there is none")
        return Outcome(title, "dropped")


def _word(definition: Definition) -> str:
    return type(definition).__name__.lower()


def _same(existing: Definition, definition: Definition) -> bool:
    if isinstance(existing, Channel) and isinstance(definition, Channel):
        return existing.same_as(definition)
    return existing == definition


def _placed(error: StatementError, statement: CreateChannel) -> StatementError:
    """An error in a channel's body, placed in the file."""
    line = statement.body_line + max(error.line, 1) - 1
    column = max(error.column, 1) + (statement.body_column - 1 if error.line <= 1 else 0)
    return StatementError(error.reason, line=line, column=column, statement=statement.text)
