"""The datasets, feeds and channels that there are, each with what makes it work.

Definitions are stored first and brought to life second; on a restart they are brought to life again in their order.
Feeds take publications from the moment the catalog is open; storing and executing begin once Spark is there.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

import tocsin
from tocsin.data.channels.check import Compiled, check
from tocsin.data.channels.execution import Execution, Executor
from tocsin.data.channels.runner import Runner, Status
from tocsin.data.lake.table import Table
from tocsin.data.pipeline import Pipeline
from tocsin.data.results import Cache, Results
from tocsin.data.store import Store
from tocsin.data.store.brokers import Broker
from tocsin.data.subscriptions import Subscriptions
from tocsin.errors import ConflictError, NotFoundError, UnavailableError
from tocsin.log import get_logger
from tocsin.model import names
from tocsin.model.definitions import Channel, Dataset, DatasetKind, Feed
from tocsin.model.loading import load_file
from tocsin.model.types import arrow_type
from tocsin.settings import Settings

log = get_logger(__name__)

_SPARK_SECONDS: Final = 120
_DRAIN_SECONDS: Final = 60

T = TypeVar("T")


class Catalog:
    """Everything that was created. Changes come one at a time; looking is free.

    Args:
        spark: the session, or the promise of one.
        executed: called after each execution that found something.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        spark: Future[SparkSession],
        executed: Callable[[Execution], None],
    ) -> None:
        self._settings, self._store, self._spark, self._executed = settings, store, spark, executed
        self._directory = settings.data.directory.resolve()
        self.scratch = self._directory / "scratch"
        self.changing = threading.RLock()
        self.datasets: dict[str, Dataset] = {}
        self.tables: dict[str, Table] = {}
        self.pipelines: dict[str, Pipeline] = {}
        self.channels: dict[str, Channel] = {}
        self.results: dict[str, Results] = {}
        self.compiled: dict[str, Compiled] = {}
        self._cache = Cache(settings.results.cache_bytes)
        self.runner: Runner | None = None
        self._open()
        self.subscriptions = Subscriptions(store, self._directory / "subscriptions")

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
            executor = Executor(spark, self.tables, self.subscriptions)
            self.runner = Runner(spark, executor, self.tables, self._settings.channels, self._executed)
            for pipeline in self.pipelines.values():
                pipeline.start(spark, self.scratch)
            for channel in self.channels.values():
                self.compiled[channel.name] = self._compile(channel)
                self.runner.add(self.compiled[channel.name], self.results[channel.name])
            self.runner.start()

    def stop(self) -> None:
        """Ends the executions and the storing, after those at hand."""
        if self.runner is not None:
            self.runner.stop()
        for pipeline in self.pipelines.values():
            pipeline.stop()

    def dataset(self, name: str) -> Dataset:
        """The dataset of that name, in any case."""
        return _found(self.datasets, name, "dataset")

    def pipeline(self, name: str) -> Pipeline:
        """The feed of that name, in any case."""
        return _found(self.pipelines, name, "feed")

    def channel(self, name: str) -> Channel:
        """The channel of that name, in any case."""
        return _found(self.channels, name, "channel")

    def create_dataset(self, dataset: Dataset) -> None:
        """Makes a dataset, or one anew that holds nothing yet."""
        existing = self.datasets.get(dataset.name)
        if existing is not None:
            self._refuse_use(dataset.name, "replaced")
            if self.tables[dataset.name].snapshot.files and existing.kind is not DatasetKind.REFERENCE:
                raise ConflictError(f"dataset {dataset.name} has records; drop it first if they may go")
            self._remove_table(dataset.name)
        self._store.definitions.put(dataset)
        self._open_dataset(dataset)

    def create_feed(self, feed: Feed) -> None:
        """Makes a feed, or gives it another assignment once everything in its log is stored."""
        other = next((p.feed.name for p in self.pipelines.values() if p.feed.dataset == feed.dataset), feed.name)
        if other != feed.name:
            raise ConflictError(f"dataset {feed.dataset} is filled by feed {other} already; a dataset has one feed")
        dataset = self.dataset(feed.dataset)
        if dataset.kind is DatasetKind.KEYED and feed.sliced_by != dataset.primary_key:
            raise ConflictError(
                f"dataset {dataset.name} keeps the newest record per {dataset.primary_key}, which needs the records of "
                f"a key in one slice: say SLICED BY {dataset.primary_key}"
            )
        if feed.name in self.pipelines:
            self._end_pipeline(feed.name)
        self._store.definitions.put(feed)
        self._open_feed(feed)
        if self.runner is not None:
            self.pipelines[feed.name].start(self.spark, self.scratch)

    def create_channel(self, channel: Channel) -> None:
        """Checks a channel and takes it on; what its datasets hold already is not new to it."""
        compiled = check(self.spark, channel, self.datasets)
        if channel.name not in self.channels:
            # Left behind by a creation or a removal that did not come to its end.
            _discard(self._directory / "results" / channel.name)
            self._open_channel(channel)
        results = self.results[channel.name]
        unseen = {name: self.tables[name].version for name in compiled.fresh if not results.seen(name)}
        if unseen:
            results.skip(unseen)
        self._store.definitions.put(channel)
        self.channels[channel.name], self.compiled[channel.name] = channel, compiled
        self._remember(channel, compiled)
        if self.runner is not None:
            self.runner.add(compiled, results)

    def drop_dataset(self, name: str) -> None:
        """Removes a dataset and its records."""
        dataset = self.dataset(name)
        self._refuse_use(dataset.name, "dropped")
        self._store.definitions.remove(Dataset, dataset.name)
        self._remove_table(dataset.name)
        del self.datasets[dataset.name]

    def drop_feed(self, name: str) -> None:
        """Removes a feed, once everything in its log is stored."""
        feed = self.pipeline(name).feed
        self._end_pipeline(feed.name)
        self._store.definitions.remove(Feed, feed.name)

    def drop_channel(self, name: str) -> None:
        """Removes a channel with its subscriptions and results."""
        channel = self.channel(name)
        if self.runner is not None:
            self.runner.remove(channel.name)
        self.subscriptions.drop(channel.name)
        self._store.definitions.remove(Channel, channel.name)
        self._cache.drop(channel.name)
        for known in (self.channels, self.results, self.compiled):
            known.pop(channel.name, None)
        _discard(self._directory / "results" / channel.name)

    def load(self, name: str, path: Path) -> int | None:
        """Fills a reference dataset with a file; how many rows, or None if it holds just that already."""
        dataset = self.dataset(name)
        if dataset.kind is not DatasetKind.REFERENCE:
            feed = next((p.feed.name for p in self.pipelines.values() if p.feed.dataset == dataset.name), "FEED")
            raise ConflictError(
                f"only a REFERENCE dataset is loaded; {dataset.name} is filled by its feed: tocsin publish {feed} FILE"
            )
        rows = load_file(dataset, path)
        digest = int.from_bytes(hashlib.blake2b(path.read_bytes(), digest_size=7).digest())
        table = self.tables[dataset.name]
        if table.marker("loaded") == digest:
            return None
        table.overwrite(rows.cast(_schema(dataset)), {"loaded": digest})
        self._stored(dataset.name)
        return int(rows.num_rows)

    def attach(self, channel_name: str, broker: str, values: list[dict[str, object]]) -> list[int]:
        """Subscribes; the first subscription of a channel sees what comes from now on."""
        channel = self.channel(channel_name)
        runner = self.runner
        if runner is not None and not self.subscriptions.count(channel.name):
            runner.between_executions(channel.name, self._skip_to_now)
        return self.subscriptions.attach(channel, broker, values)

    def _skip_to_now(self, compiled: Compiled, results: Results) -> None:
        behind = {n: self.tables[n].version for n in compiled.fresh if self.tables[n].version > results.seen(n)}
        if behind and not self.subscriptions.count(compiled.channel.name):
            results.skip(behind)

    def _open(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        for stored in self._store.definitions.all():
            match stored.definition:
                case Dataset() as dataset:
                    self._open_dataset(dataset)
                case Feed() as feed:
                    self._open_feed(feed)
                case Channel() as channel:
                    self._open_channel(channel)

    def _open_dataset(self, dataset: Dataset) -> None:
        self.tables[dataset.name] = Table(self._directory / "datasets" / dataset.name, _schema(dataset))
        self.datasets[dataset.name] = dataset

    def _open_feed(self, feed: Feed) -> None:
        dataset = self.dataset(feed.dataset)
        self.pipelines[feed.name] = Pipeline(
            feed,
            dataset,
            self.tables[dataset.name],
            self._directory,
            self._settings.feeds,
            lambda: self._stored(dataset.name),
        )

    def _open_channel(self, channel: Channel) -> None:
        self.channels[channel.name] = channel
        self.results[channel.name] = Results(channel.name, self._directory / "results" / channel.name, self._cache)

    def _stored(self, dataset: str) -> None:
        if self.runner is not None:
            self.runner.committed(dataset)

    def _end_pipeline(self, name: str) -> None:
        pipeline = self.pipelines[name]
        if pipeline.backlog:
            pipeline.drain(_DRAIN_SECONDS)
        pipeline.stop()
        del self.pipelines[name]
        _discard(pipeline.log.path)

    def _remove_table(self, name: str) -> None:
        del self.tables[name]
        _discard(self._directory / "datasets" / name)
        _discard(self._directory / "ids" / name)

    def _refuse_use(self, dataset: str, what: str) -> None:
        users = [f"feed {p.feed.name}" for p in self.pipelines.values() if p.feed.dataset == dataset]
        users += [f"channel {c.channel.name}" for c in self.compiled.values() if dataset in c.whole | c.fresh]
        if users:
            raise ConflictError(f"dataset {dataset} cannot be {what}: {', '.join(users)} use it; drop these first")

    def _compile(self, channel: Channel) -> Compiled:
        """The compiled channel, from an earlier check of the very same thing if there was one."""
        file = self._compiled_file(channel)
        if file.exists():
            return msgspec.json.decode(file.read_bytes(), type=Compiled)
        compiled = check(self.spark, channel, self.datasets)
        self._remember(channel, compiled)
        return compiled

    def _remember(self, channel: Channel, compiled: Compiled) -> None:
        file = self._compiled_file(channel)
        file.parent.mkdir(parents=True, exist_ok=True)
        for old in file.parent.glob(f"{channel.name}-*.json"):
            old.unlink()
        draft = file.with_suffix(".draft")
        draft.write_bytes(msgspec.json.encode(compiled))
        draft.rename(file)

    def _compiled_file(self, channel: Channel) -> Path:
        known = msgspec.json.encode([tocsin.__version__, channel, sorted(self.datasets.values(), key=lambda d: d.name)])
        digest = hashlib.blake2b(known, digest_size=8).hexdigest()
        return self._directory / "compiled" / f"{channel.name}-{digest}.json"

    def brokers(self) -> list[Broker]:
        """The brokers that have made themselves known."""
        return self._store.brokers.all()

    def status(self, channel: str) -> Status:
        """How a channel is doing."""
        return self.runner.status(channel) if self.runner is not None else Status("starting", "", 0, 0.0)

    def all_tables(self) -> Iterator[Table]:
        """Every table there is, for upkeep."""
        yield from list(self.tables.values())
        yield from (results.table for results in list(self.results.values()))


def _schema(dataset: Dataset) -> pa.Schema:
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in dataset.columns])


def _found(known: Mapping[str, T], name: str, what: str) -> T:
    folded = name.casefold()
    found = next((value for key, value in known.items() if key.casefold() == folded), None)
    if found is None:
        raise NotFoundError(f"there is no {what} {name}{names.suggestion(name, list(known))}")
    return found


def _discard(directory: Path) -> None:
    """Removes a directory, first under another name, so that a crash leaves nothing half there."""
    if directory.exists():
        doomed = directory.with_name(f".removed-{directory.name}")
        shutil.rmtree(doomed, ignore_errors=True)
        directory.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
