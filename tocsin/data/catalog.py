"""The datasets, feeds and channels that there are, each with what makes it work.

Definitions are stored first and brought to life second; on a restart they are brought to life again in their order.
Feeds take publications from the moment the catalog is open; storing and executing begin once Spark is there.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from tocsin.data import conflicts
from tocsin.data.attachment import Attachment
from tocsin.data.channels.check import Compiled
from tocsin.data.channels.execution import Execution, Executor
from tocsin.data.channels.letters import DeadLetters
from tocsin.data.channels.runner import Runner, Status
from tocsin.data.compiling import Compiler
from tocsin.data.conflicts import find
from tocsin.data.control.core import Position
from tocsin.data.disk import Disk, sync_directory
from tocsin.data.lake.table import VERSION, Table
from tocsin.data.pipeline import Pipeline
from tocsin.data.removal import aside, discard, finish, put_back, set_aside, unfinished
from tocsin.data.results import Cache, Results
from tocsin.data.store import Aside, Store
from tocsin.data.store.brokers import Broker
from tocsin.data.subscriptions import Subscriptions
from tocsin.errors import GoneError, NotFoundError, StatementError, StorageError, UnavailableError
from tocsin.log import get_logger
from tocsin.model.histories import incarnation
from tocsin.model.terms import Asker, admit, fill_in
from tocsin.schema.arrow import arrow_type
from tocsin.schema.definitions import Channel, Dataset, Definition, Feed
from tocsin.schema.loading import load_file
from tocsin.settings import Settings

log = get_logger(__name__)

_SPARK_SECONDS: Final = 120
_DRAIN_SECONDS: Final = 60

T = TypeVar("T")


class Catalog:
    """Everything that was created. Changes come one at a time; looking is free.

    Args:
        spark: the session, or the promise of one.
        executed: called after each execution.
        dropped: called with the name and the last incarnation of a channel that is no more.
        changed: called with a channel that has other terms than before.
        failing: called with the name of a channel that fails again and again, and a reason without anybody's values.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        spark: Future[SparkSession],
        executed: Callable[[Execution], None],
        dropped: Callable[[str, str], None],
        changed: Callable[[Channel], None] = lambda _: None,
        failing: Callable[[str, str], None] = lambda _channel, _reason: None,
    ) -> None:
        self._settings, self._store, self._spark = settings, store, spark
        self._executed, self._dropped, self._changed, self._failing = executed, dropped, changed, failing
        self._directory = settings.data.directory.resolve()
        self.changing = threading.RLock()
        self.datasets: dict[str, Dataset] = {}
        self.tables: dict[str, Table] = {}
        self.pipelines: dict[str, Pipeline] = {}
        self.channels: dict[str, Channel] = {}
        self.results: dict[str, Results] = {}
        self.compiled: dict[str, Compiled] = {}
        self._refused: dict[str, str] = {}
        self._compiler = Compiler(self._directory / "compiled", self.datasets)
        self._cache = Cache(settings.results.cache_bytes)
        self._disk = Disk(settings.lake.sync)
        self.dead_letters = DeadLetters(self._directory / "dead-letters-of-channels", self._disk)
        self.runner: Runner | None = None
        self._open()
        store.histories.begin({name: results.execution for name, results in self.results.items()})
        store.subscriptions.begin(datetime.now(UTC))
        self.histories = {name: store.histories.of(name) for name in self.channels}
        self.subscriptions = Subscriptions(store, self._directory / "subscriptions", settings.channels.parameter_bytes)

    @property
    def spark(self) -> SparkSession:
        """Spark, waited for if it is still starting."""
        try:
            return self._spark.result(_SPARK_SECONDS)
        except NotYet:
            raise UnavailableError("Spark has not started yet; try again in a moment") from None

    def start(self) -> None:
        """Begins to store and to execute, once Spark is there."""
        with self.changing:
            spark = self.spark
            settings = self._settings.channels
            executor = Executor(
                spark, self.tables, self.subscriptions, self._store.set_aside, self.dead_letters, settings
            )
            self.runner = Runner(spark, executor, self.tables, settings, self._executed, self._failing)
            for pipeline in self.pipelines.values():
                pipeline.start(spark, self.scratch)
            for channel in self.channels.values():
                self._begin(channel, self.runner)
            self.runner.start()

    def stop(self) -> None:
        """Ends the executions and the storing, after those at hand."""
        if self.runner is not None:
            self.runner.stop()
        for pipeline in self.pipelines.values():
            pipeline.stop()

    @property
    def feeds(self) -> dict[str, Feed]:
        """The feeds by name."""
        return {name: pipeline.feed for name, pipeline in self.pipelines.items()}

    def dataset(self, name: str) -> Dataset:
        """The dataset of that name, in any case."""
        return find(self.datasets, name, "dataset")

    def pipeline(self, name: str) -> Pipeline:
        """The feed of that name, in any case."""
        return find(self.pipelines, name, "feed")

    def channel(self, name: str) -> Channel:
        """The channel of that name, in any case."""
        return find(self.channels, name, "channel")

    def create_dataset(self, dataset: Dataset) -> None:
        """Makes a dataset, or one anew that holds nothing yet."""
        conflicts.check_dataset(self, dataset)
        with set_aside(*self._directories(dataset.name) if dataset.name in self.datasets else ()):
            self._store.definitions.put(dataset)
        self._open_dataset(dataset)

    def create_feed(self, feed: Feed) -> None:
        """Makes a feed, or gives it another assignment once everything in its log is stored."""
        conflicts.check_feed(self, feed)
        if feed.name in self.pipelines:
            with self._ended(feed.name):
                self._store.definitions.put(feed)
        else:
            discard(self._directory / "dead-letters" / feed.name)
            self._store.definitions.put(feed)
        self._begin_feed(feed)

    def create_channel(self, channel: Channel) -> None:
        """Checks a channel and takes it on; what its datasets hold already is not new to it."""
        compiled = self._compiler.compiled(self.spark, channel)
        results = self.results.get(channel.name)
        if results is None:
            # Left behind by a creation or a removal that did not come to its end.
            discard(self._directory / "results" / channel.name)
            results = self._results(channel)
        with self._held(channel.name):
            self._skip_unwatched(compiled, results)
            self._store.definitions.put(channel)
            self._store.set_aside.clear(channel.name)
        before = self.channels.get(channel.name)
        self.channels[channel.name], self.results[channel.name] = channel, results
        if before is not None and before.terms != channel.terms:
            self._changed(channel)
        self.compiled[channel.name] = compiled
        self.histories[channel.name] = self._store.histories.of(channel.name)
        self._refused.pop(channel.name, None)
        if self.runner is not None:
            self.runner.add(compiled, results)

    def drop_dataset(self, name: str) -> None:
        """Removes a dataset and its records."""
        dataset = self.dataset(name)
        conflicts.check_unused(self, dataset.name, "dropped")
        with set_aside(*self._directories(dataset.name)):
            self._store.definitions.remove(Dataset, dataset.name)
        del self.tables[dataset.name], self.datasets[dataset.name]

    def drop_feed(self, name: str) -> None:
        """Removes a feed with its dead letters, once everything in its log is stored."""
        feed = self.pipeline(name).feed
        with self._ended(feed.name, self._directory / "dead-letters" / feed.name):
            self._store.definitions.remove(Feed, feed.name)

    def drop_channel(self, name: str) -> None:
        """Removes a channel with its subscriptions and results."""
        channel = self.channel(name)
        if self.runner is not None:
            self.runner.cancel(channel.name)
        with self._held(channel.name):
            self._store.definitions.remove(Channel, channel.name)
        if self.runner is not None:
            self.runner.remove(channel.name)
        self.subscriptions.drop(channel.name)
        self._cache.drop(channel.name)
        self._compiler.forget(channel.name)
        last = incarnation(self.histories[channel.name])
        for known in (self.channels, self.results, self.compiled, self._refused, self.histories):
            known.pop(channel.name, None)
        self._dropped(channel.name, last)
        self.dead_letters.forget(channel.name)
        for directory in (self._directory / "results" / channel.name, self.dead_letters.path(channel.name)):
            discard(directory)

    def load(self, name: str, path: Path) -> int | None:
        """Fills a reference dataset with a file; how many rows, or None if it holds just that already."""
        dataset = self.dataset(name)
        conflicts.check_loaded(self, dataset)
        rows = load_file(dataset, path)
        digest = int.from_bytes(hashlib.blake2b(path.read_bytes(), digest_size=7).digest())
        table = self.tables[dataset.name]
        if table.marker("loaded") == digest:
            return None
        table.overwrite(rows.cast(_schema(dataset)), {"loaded": digest})
        self._stored(dataset.name)
        return int(rows.num_rows)

    def rows(self, dataset: str) -> int:
        """How many records a dataset has."""
        return int(self.tables[self.dataset(dataset).name].read(columns=[VERSION]).num_rows)

    def attach(
        self, channel_name: str, broker: str, values: list[dict[str, object]], asker: Asker | None = None
    ) -> Attachment:
        """Subscribes; the first subscription of a channel sees what comes from now on.

        ``asker`` must be one who may use the channel, and has its bound parameters filled in.
        """
        channel = self._wanted_channel(channel_name)
        if asker is not None:
            admit(channel.terms, asker, f"channel {channel.name}")
            values = [fill_in(channel.terms, asker.name, value) for value in values]
        if values and not self.subscriptions.count(channel.name):
            with self._held(channel.name):
                self._skip_to_now(channel.name)
        rows = self.subscriptions.canonical(channel, values)
        bes = self.subscriptions.attach_rows(channel, broker, rows)
        if channel.name not in self.channels:
            raise _gone(channel.name)
        return Attachment(channel, bes, rows)

    def position(self, name: str) -> Position | None:
        """How far the channel of that name is, in any case; None if there is none."""
        folded = name.casefold()
        channel = next((each for known, each in list(self.channels.items()) if known.casefold() == folded), None)
        if channel is None:
            return None
        results, history = self.results.get(channel.name), self.histories.get(channel.name)
        if results is None or history is None:
            return None
        return Position(results.execution, history, channel.terms)

    def _wanted_channel(self, name: str) -> Channel:
        """The channel of that name; one that was dropped is gone, one that never was is not found."""
        try:
            return self.channel(name)
        except NotFoundError:
            if self._store.histories.of(name):
                raise _gone(name) from None
            raise

    def _held(self, channel: str) -> AbstractContextManager[None]:
        """While entered, the channel does not run."""
        return nullcontext() if self.runner is None else self.runner.held(channel)

    def _skip_to_now(self, channel: str) -> None:
        """Unless somebody subscribed meanwhile, what there is so far is not new to the channel."""
        results, compiled = self.results.get(channel), self.compiled.get(channel)
        if results is None or self.subscriptions.count(channel):
            return
        # Of a channel that is not compiled yet nobody knows what it looks at; more than that does no harm.
        watched = compiled.fresh if compiled is not None else set(self.tables)
        _skip({name: self.tables[name].version for name in watched}, results)

    def _skip_unwatched(self, compiled: Compiled, results: Results) -> None:
        """What is there so far is not new to a channel that did not look for news there before."""
        before = self.compiled.get(compiled.channel.name)
        unwatched = compiled.fresh - before.fresh if before is not None else compiled.fresh
        _skip({name: self.tables[name].version for name in unwatched}, results)

    def _open(self) -> None:
        self.scratch = _fresh_directory(self._directory / "scratch")
        definitions = [stored.definition for stored in self._store.definitions.all()]
        self._settle_removals(definitions)
        try:
            for definition in definitions:
                self._open_definition(definition)
            self._pull_back()
            sync_directory(self._directory)
        except BaseException:
            for pipeline in self.pipelines.values():
                pipeline.stop()
            raise

    def _settle_removals(self, definitions: list[Definition]) -> None:
        """Ends the removals that a crash interrupted, or undoes them where what they belong to still exists."""
        datasets = {definition.name: definition for definition in definitions if isinstance(definition, Dataset)}
        feeds = {definition.name for definition in definitions if isinstance(definition, Feed)}
        for place in (path for path in self._directory.iterdir() if path.is_dir()):
            for directory in unfinished(place):
                dataset = datasets.get(directory.name) if place.name == "datasets" else None
                missed = place.name == "dead-letters" and directory.name in feeds
                # One that was replaced by another with other columns is not missed.
                missed = missed or (dataset is not None and _fits(aside(directory), dataset))
                if missed and not directory.exists():
                    put_back(directory)
                else:
                    finish(directory)

    def _pull_back(self) -> None:
        """A channel has seen no more of a dataset than there is, even if the end of the dataset was set aside."""
        for name, results in self.results.items():
            ahead = {n: table.version for n, table in self.tables.items() if results.seen(n) > table.version}
            if ahead:
                log.error("a channel had seen more of a dataset than there is", channel=name, datasets=sorted(ahead))
                results.skip(ahead)

    def _open_definition(self, definition: Definition) -> None:
        match definition:
            case Dataset():
                self._open_dataset(definition)
            case Feed():
                self._open_feed(definition)
            case Channel():
                self.channels[definition.name] = definition
                self.results[definition.name] = self._results(definition)

    def _open_dataset(self, dataset: Dataset) -> None:
        directory = self._directory / "datasets" / dataset.name
        self.tables[dataset.name] = Table(directory, _schema(dataset), self._settings.lake.recent_bytes, self._disk)
        self.datasets[dataset.name] = dataset

    def _open_feed(self, feed: Feed) -> None:
        dataset = self.dataset(feed.dataset)
        self.pipelines[feed.name] = Pipeline(
            feed,
            dataset,
            self.tables[dataset.name],
            self._directory,
            self._settings.feeds,
            self._disk,
            lambda: self._stored(dataset.name),
        )

    def _results(self, channel: Channel) -> Results:
        return Results(channel.name, self._directory / "results" / channel.name, self._cache, self._disk)

    def _begin(self, channel: Channel, runner: Runner) -> None:
        """Lets a channel run; one that Spark no longer takes says so, and the others go on."""
        try:
            compiled = self._compiler.compiled(self.spark, channel)
        except StatementError as error:
            self._refused[channel.name] = f"this channel can no longer be run: {error}"
            log.error("a channel can no longer be run", channel=channel.name, reason=str(error))  # noqa: TRY400
            return
        self.compiled[channel.name] = compiled
        runner.add(compiled, self.results[channel.name])

    def _stored(self, dataset: str) -> None:
        if self.runner is not None:
            self.runner.committed(dataset)

    def _begin_feed(self, feed: Feed) -> None:
        self._open_feed(feed)
        if self.runner is not None:
            self.pipelines[feed.name].start(self.spark, self.scratch)

    @contextmanager
    def _ended(self, name: str, *others: Path) -> Iterator[None]:
        """While entered, a feed and its log are no more, everything in it being stored; for good if nothing fails."""
        pipeline = self.pipelines[name]
        # Without Spark nothing would come of waiting.
        pipeline.drain(_DRAIN_SECONDS if self.runner is not None else 0)
        pipeline.stop()
        del self.pipelines[name]
        try:
            with set_aside(pipeline.log.path, *others):
                yield
        except Exception:
            self._begin_feed(pipeline.feed)
            raise

    def _directories(self, dataset: str) -> list[Path]:
        """What belongs to a dataset; ids of one that is no more would keep records from the next of that name."""
        return [self._directory / "ids" / dataset, self._directory / "datasets" / dataset]

    def has_records(self, dataset: str) -> bool:
        """Whether there are records in a dataset."""
        return bool(self.tables[dataset].snapshot.files)

    def compiling(self, datasets: Mapping[str, Dataset]) -> Callable[[Channel], Compiled]:
        """What has Spark check channels over ``datasets``, which may change meanwhile."""
        compiler = Compiler(self._directory / "compiled", datasets)
        return lambda channel: compiler.compiled(self.spark, channel)

    def uses(self, channel: str, dataset: str) -> bool:
        """Whether the body of a channel reads a dataset."""
        compiled = self.compiled.get(channel)
        if compiled is not None:
            return dataset in compiled.whole | compiled.fresh
        return re.search(rf"\b{dataset}\b", self.channels[channel].body, re.IGNORECASE) is not None

    def brokers(self) -> list[Broker]:
        """The brokers that have made themselves known."""
        return self._store.brokers.all()

    def status(self, channel: str) -> Status:
        """How a channel is doing."""
        if channel in self._refused:
            return Status("failing", self._refused[channel], 0, 0.0)
        return self.runner.status(channel) if self.runner is not None else Status("starting", "", 0, 0.0)

    def set_aside(self, channel: str) -> list[Aside]:
        """The subscriptions that a channel is not executed for, and why."""
        return self._store.set_aside.of(channel, time.time())

    def all_tables(self) -> Iterator[Table]:
        """Every table there is, for upkeep."""
        yield from list(self.tables.values())
        yield from (results.table for results in list(self.results.values()))
        yield from (pipeline.dead_letters for pipeline in list(self.pipelines.values()))
        yield from self.dead_letters.tables()


def _gone(channel: str) -> GoneError:
    return GoneError(f"channel {channel} was dropped, and its subscriptions with it")


def _skip(versions: Mapping[str, int], results: Results) -> None:
    other = {name: version for name, version in versions.items() if version != results.seen(name)}
    if other:
        results.skip(other)


def _schema(dataset: Dataset) -> pa.Schema:
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in dataset.columns])


def _fits(directory: Path, dataset: Dataset) -> bool:
    """Whether the table in a directory has the columns of a dataset."""
    try:
        Table(directory, _schema(dataset))
    except StorageError:
        return False
    return True


def _fresh_directory(place: Path) -> Path:
    """A new directory in ``place``, and what earlier runs left there removed.

    A new one each time: the Spark of a process that was killed lives a moment longer, and still writes to its own.
    """
    shutil.rmtree(place, ignore_errors=True)
    try:
        place.mkdir(parents=True, exist_ok=True)
        return Path(mkdtemp(dir=place))
    except OSError as error:
        raise StorageError(f"temporary files cannot be kept in {place}: {error.strerror}") from None
