"""Application files carried out, statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from tocsin.data.catalog import Catalog
from tocsin.data.conflicts import KnownDefinitions, find
from tocsin.data.draft import Draft
from tocsin.data.language.forms import (
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
from tocsin.data.language.parser import parse
from tocsin.data.listing import describe_thing, list_things
from tocsin.data.processing.process import check_function
from tocsin.errors import ConflictError, InvalidError, NotFoundError, StatementError
from tocsin.functions import require_allowed
from tocsin.model.messages import Action, StatementOutcome
from tocsin.schema.definitions import Channel, Dataset, Definition, Feed
from tocsin.settings import FeedsSettings
from tocsin.slices.assignment import is_function

Told = Callable[[StatementOutcome], None]


class Applier:
    """Carries statements out on a catalog: all of a file, or nothing where that can be known beforehand.

    A file is read as a whole and tried on a draft of the catalog first: syntax, names, what uses what, and the bodies
    of channels, which Spark checks. Only then is the first statement carried out.

    What can go wrong after that: the disk is full, a feed does not come to its end. Those before have been carried out,
    and were told; applying the corrected file again does the rest.
    """

    def __init__(self, catalog: Catalog, settings: FeedsSettings) -> None:
        self._catalog, self._settings = catalog, settings

    def apply(self, text: str, directory: Path | None, told: Told = lambda _: None) -> list[StatementOutcome]:
        """Carries out a file, and has each outcome ``told`` as soon as there is one.

        Paths in it are relative to ``directory``, without which nothing is loaded.
        """
        statements = parse(text)
        if directory is None:
            _refuse_loads(statements)
        with self._catalog.changing:
            self._try(statements, directory)
            carrying = _Statements(_Live(self._catalog), self._settings)
            outcomes = []
            for statement in statements:
                outcomes.append(carrying.outcome(statement, directory))
                told(outcomes[-1])
            return outcomes

    def check(self, text: str) -> list[StatementOutcome]:
        """What applying a file would do, as far as can be known without the files it loads; nothing is changed."""
        with self._catalog.changing:
            return self._try(parse(text), None)

    def _try(self, statements: list[Statement], directory: Path | None) -> list[StatementOutcome]:
        trying = _Statements(Draft(self._catalog), self._settings)
        return [trying.outcome(statement, directory) for statement in statements]


def _refuse_loads(statements: list[Statement]) -> None:
    for statement in statements:
        if isinstance(statement, LoadDataset):
            raise statement.error(
                "LOAD names a file of yours, which the server does not read: use tocsin apply, or send the file to "
                f"POST /datasets/{statement.dataset}/load"
            )


class _Target(KnownDefinitions, Protocol):
    """What statements are carried out on."""

    def create_dataset(self, dataset: Dataset) -> None: ...
    def create_feed(self, feed: Feed) -> None: ...
    def create_channel(self, channel: Channel) -> None: ...
    def drop_dataset(self, name: str) -> None: ...
    def drop_feed(self, name: str) -> None: ...
    def drop_channel(self, name: str) -> None: ...
    def load(self, name: str, path: Path | None) -> int | None: ...
    def list_things(self, what: str) -> list[dict[str, Any]]: ...
    def describe_thing(self, what: Thing, name: str) -> list[dict[str, Any]]: ...


class _Live:
    """The catalog itself."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.uses, self.has_records = catalog.uses, catalog.has_records
        self.create_dataset, self.drop_dataset = catalog.create_dataset, catalog.drop_dataset
        self.create_feed, self.drop_feed = catalog.create_feed, catalog.live_feeds.drop
        self.create_channel, self.drop_channel = catalog.live.create, catalog.live.drop

    @property
    def datasets(self) -> Mapping[str, Dataset]:
        return self._catalog.datasets

    @property
    def feeds(self) -> Mapping[str, Feed]:
        return self._catalog.feeds

    @property
    def channels(self) -> Mapping[str, Channel]:
        return self._catalog.channels

    def load(self, name: str, path: Path | None) -> int | None:
        assert path is not None
        return self._catalog.load(name, path)

    def list_things(self, what: str) -> list[dict[str, Any]]:
        return list_things(self._catalog, what)

    def describe_thing(self, what: Thing, name: str) -> list[dict[str, Any]]:
        return describe_thing(self._catalog, what, name)


class _Statements:
    """What each statement does to a target."""

    def __init__(self, target: _Target, settings: FeedsSettings) -> None:
        self._target, self._settings = target, settings

    def outcome(self, statement: Statement, directory: Path | None) -> StatementOutcome:
        """Carries a statement out; one that is refused is refused at its place in the file."""
        try:
            return self._outcome(statement, directory)
        except StatementError:
            raise
        except (ConflictError, InvalidError, NotFoundError) as error:
            raise statement.error(str(error)) from None

    def _outcome(self, statement: Statement, directory: Path | None) -> StatementOutcome:
        match statement:
            case CreateDataset() | CreateFeed() | CreateChannel():
                return self._create(statement)
            case LoadDataset():
                return self._load(statement, directory)
            case Drop():
                return self._drop(statement)
            case Show():
                return StatementOutcome(
                    f"show {statement.what}", "shown", rows=self._target.list_things(statement.what)
                )
            case Describe():
                rows = self._target.describe_thing(statement.what, statement.name)
                return StatementOutcome(f"{statement.what} {statement.name}", "shown", rows=rows)

    def _create(self, statement: CreateDataset | CreateFeed | CreateChannel) -> StatementOutcome:
        definition = self._definition(statement)
        existing = self._existing(definition)
        title = f"{_word(definition)} {definition.name}"
        if existing is not None and existing.name != definition.name:
            raise ConflictError(f"{title} is written {existing.name} so far; names differ in more than case")
        if existing is not None and _same(existing, definition):
            return StatementOutcome(title, "unchanged")
        if existing is not None and statement.if_not_exists:
            return StatementOutcome(
                title, "unchanged", "exists with another definition, which IF NOT EXISTS leaves alone"
            )
        if existing is not None and not statement.or_replace:
            return StatementOutcome(title, "changed", _how_to_replace(existing, definition))
        self._put(statement, definition)
        action: Action = "created" if existing is None else "replaced"
        return StatementOutcome(title, action)

    def _definition(self, statement: CreateDataset | CreateFeed | CreateChannel) -> Definition:
        if isinstance(statement, CreateFeed):
            return statement.feed(find(self._target.datasets, statement.dataset, "dataset"), self._settings.slices)
        return statement.definition

    def _existing(self, definition: Definition) -> Definition | None:
        target = self._target
        known: dict[str, Mapping[str, Definition]]
        known = {"dataset": target.datasets, "feed": target.feeds, "channel": target.channels}
        folded = definition.name.casefold()
        return next((d for name, d in known[_word(definition)].items() if name.casefold() == folded), None)

    def _put(self, statement: CreateDataset | CreateFeed | CreateChannel, definition: Definition) -> None:
        match definition:
            case Dataset():
                self._target.create_dataset(definition)
            case Feed():
                self._check_functions(statement, definition)
                self._target.create_feed(definition)
            case Channel():
                self._create_channel(statement, definition)

    def _check_functions(self, statement: CreateDataset | CreateFeed | CreateChannel, feed: Feed) -> None:
        """Refuses functions that are not allowed or not to be had, each at the place where it is named."""
        assert isinstance(statement, CreateFeed)
        clause = "USING"
        try:
            if is_function(feed.using):
                require_allowed(feed.using, self._settings.functions)
                check_function(feed.using, self._settings.function_bytes)
            clause = "PROCESSED BY"
            if feed.processed_by:
                require_allowed(feed.processed_by, self._settings.functions)
                check_function(feed.processed_by, self._settings.function_bytes)
        except InvalidError as error:
            raise statement.error_at(clause, str(error)) from None

    def _create_channel(self, statement: CreateDataset | CreateFeed | CreateChannel, channel: Channel) -> None:
        try:
            self._target.create_channel(channel)
        except StatementError as error:
            assert isinstance(statement, CreateChannel)
            raise _place(error, statement) from None

    def _load(self, statement: LoadDataset, directory: Path | None) -> StatementOutcome:
        title = f"dataset {statement.dataset}"
        rows = self._target.load(statement.dataset, directory and directory / statement.path)
        if rows is None:
            return StatementOutcome(title, "unchanged", "holds that file already")
        if directory is None:
            # Only checked: the file is not at hand.
            return StatementOutcome(title, "loaded", "unless it holds that file already")
        return StatementOutcome(title, "loaded", f"{rows:,} rows")

    def _drop(self, statement: Drop) -> StatementOutcome:
        title = f"{statement.what} {statement.name}"
        drop = {
            Thing.DATASET: self._target.drop_dataset,
            Thing.FEED: self._target.drop_feed,
            Thing.CHANNEL: self._target.drop_channel,
        }[statement.what]
        try:
            drop(statement.name)
        except NotFoundError:
            if not statement.if_exists:
                raise
            return StatementOutcome(title, "unchanged", "there is none")
        return StatementOutcome(title, "dropped")


def _word(definition: Definition) -> str:
    return type(definition).__name__.lower()


def _how_to_replace(existing: Definition, definition: Definition) -> str:
    said = f"differs from what exists; say CREATE OR REPLACE {_word(definition).upper()} to replace it"
    if isinstance(existing, Feed) and isinstance(definition, Feed) and existing.slices != definition.slices:
        return f"{said}: a log keeps its slices, so everything in it is stored first, and another log is begun"
    return said


def _same(existing: Definition, definition: Definition) -> bool:
    if isinstance(existing, Channel) and isinstance(definition, Channel):
        return existing.same_as(definition)
    return existing == definition


def _place(error: StatementError, statement: CreateChannel) -> StatementError:
    """An error in a channel's body, placed in the file."""
    line = statement.body_line + max(error.line, 1) - 1
    column = max(error.column, 1) + (statement.body_column - 1 if error.line <= 1 else 0)
    return StatementError(error.reason, line=line, column=column, statement=statement.text)
