"""The datasets, feeds and channels that there are, each with what makes it work.

Definitions are stored first and brought to life second; on a restart they are brought to life again in their order.
Feeds take publications from the moment the catalog is open; storing and executing begin once Spark is there.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from tocsin.data import conflicts
from tocsin.data.channels.execution import Execution
from tocsin.data.channels.runner import Runner
from tocsin.data.compiler.compiler import Compiler
from tocsin.data.conflicts import find
from tocsin.data.disk import Disk
from tocsin.data.lake.table import VERSION, Table
from tocsin.data.live_channels import LiveChannels
from tocsin.data.pipeline import Pipeline
from tocsin.data.removal import aside, discard, fresh_directory, set_aside, settle
from tocsin.data.session import wait_for_session
from tocsin.data.store import Store
from tocsin.data.store.brokers import Broker
from tocsin.errors import StorageError
from tocsin.schema.arrow import record_schema
from tocsin.schema.definitions import Channel, Dataset, Definition, Feed
from tocsin.schema.loading import load_file
from tocsin.settings import Settings

_DRAIN_SECONDS: Final = 60


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
        self._settings, self._store = settings, store
        self.spark = partial(wait_for_session, spark)
        self._directory = settings.data.directory.resolve()
        self.changing = threading.RLock()
        self.datasets: dict[str, Dataset] = {}
        self.tables: dict[str, Table] = {}
        self.pipelines: dict[str, Pipeline] = {}
        self.runner = Runner(self.tables, settings.channels, executed, failing)
        self.compiler = Compiler(self._directory / "compiled", self.datasets, self.spark)
        self._disk = Disk(settings.lake.sync)
        self.scratch = fresh_directory(self._directory / "scratch")
        definitions = [stored.definition for stored in store.definitions.all()]
        self._settle_removals(definitions)
        try:
            channels = self._open(definitions)
            parts = (self.tables, self.compiler, self.runner, self._disk)
            self.live = LiveChannels(settings, store, channels, *parts, dropped, changed)
        except BaseException:
            self._stop_pipelines()
            raise

    def start(self) -> None:
        """Begins to store and to execute, once Spark is there."""
        with self.changing:
            spark = self.spark()
            for pipeline in self.pipelines.values():
                pipeline.start(spark, self.scratch)
            self.live.start(spark)

    def stop(self) -> None:
        """Ends the executions and the storing, after those at hand."""
        self.runner.stop()
        self._stop_pipelines()

    @property
    def feeds(self) -> dict[str, Feed]:
        """The feeds by name."""
        return {name: pipeline.feed for name, pipeline in self.pipelines.items()}

    @property
    def channels(self) -> dict[str, Channel]:
        """The channels by name."""
        return self.live.definitions

    def dataset(self, name: str) -> Dataset:
        """The dataset of that name, in any case."""
        return find(self.datasets, name, "dataset")

    def pipeline(self, name: str) -> Pipeline:
        """The feed of that name, in any case."""
        return find(self.pipelines, name, "feed")

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

    def load(self, name: str, path: Path) -> int | None:
        """Fills a reference dataset with a file; how many rows, or None if it holds just that already."""
        dataset = self.dataset(name)
        conflicts.check_loaded(self, dataset)
        rows = load_file(dataset, path)
        digest = int.from_bytes(hashlib.blake2b(path.read_bytes(), digest_size=7).digest())
        table = self.tables[dataset.name]
        if table.marker("loaded") == digest:
            return None
        table.overwrite(rows.cast(record_schema(dataset.columns)), {"loaded": digest})
        self.runner.committed(dataset.name)
        return int(rows.num_rows)

    def rows(self, dataset: str) -> int:
        """How many records a dataset has."""
        return int(self.tables[self.dataset(dataset).name].read(columns=[VERSION]).num_rows)

    def has_records(self, dataset: str) -> bool:
        """Whether there are records in a dataset."""
        return bool(self.tables[dataset].snapshot.files)

    def uses(self, channel: str, dataset: str) -> bool:
        """Whether the body of a channel reads a dataset."""
        return self.live[channel].reads(dataset)

    def brokers(self) -> list[Broker]:
        """The brokers that have made themselves known."""
        return self._store.brokers.all()

    def all_tables(self) -> Iterator[Table]:
        """Every table there is, for upkeep."""
        yield from list(self.tables.values())
        yield from (pipeline.dead_letters for pipeline in list(self.pipelines.values()))
        yield from self.live.all_tables()

    def _stop_pipelines(self) -> None:
        for pipeline in self.pipelines.values():
            pipeline.stop()

    def _open(self, definitions: list[Definition]) -> list[Channel]:
        """Opens datasets and feeds; the channels that are left."""
        for definition in definitions:
            if isinstance(definition, Dataset):
                self._open_dataset(definition)
            elif isinstance(definition, Feed):
                self._open_feed(definition)
        return [definition for definition in definitions if isinstance(definition, Channel)]

    def _settle_removals(self, definitions: list[Definition]) -> None:
        """Ends the removals that a crash interrupted, or undoes them where what they belong to still exists."""
        known = {(type(definition), definition.name): definition for definition in definitions}

        def is_missed(directory: Path) -> bool:
            if directory.parent.name == "dead-letters":
                return (Feed, directory.name) in known
            dataset = known.get((Dataset, directory.name)) if directory.parent.name == "datasets" else None
            # One that was replaced by another with other columns is not missed.
            return isinstance(dataset, Dataset) and _fits(aside(directory), dataset)

        settle(self._directory, is_missed)

    def _open_dataset(self, dataset: Dataset) -> None:
        directory, columns = self._directory / "datasets" / dataset.name, record_schema(dataset.columns)
        self.tables[dataset.name] = Table(directory, columns, self._settings.lake.recent_bytes, self._disk)
        self.datasets[dataset.name] = dataset

    def _open_feed(self, feed: Feed) -> None:
        dataset = self.dataset(feed.dataset)
        place = (self._directory, self._settings.feeds, self._disk)
        self.pipelines[feed.name] = Pipeline(feed, dataset, self.tables[dataset.name], *place, self.runner.committed)

    def _begin_feed(self, feed: Feed) -> None:
        self._open_feed(feed)
        if self.runner.started:
            self.pipelines[feed.name].start(self.spark(), self.scratch)

    @contextmanager
    def _ended(self, name: str, *others: Path) -> Iterator[None]:
        """While entered, a feed and its log are no more, everything in it being stored; for good if nothing fails."""
        pipeline = self.pipelines[name]
        # Without Spark nothing would come of waiting.
        pipeline.drain(_DRAIN_SECONDS if self.runner.started else 0)
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


def _fits(directory: Path, dataset: Dataset) -> bool:
    """Whether the table in a directory has the columns of a dataset."""
    try:
        Table(directory, record_schema(dataset.columns))
    except StorageError:
        return False
    return True
