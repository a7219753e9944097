"""The datasets, feeds and channels that there are, each with what makes it work.

Definitions are stored first and brought to life second; on a restart they are brought to life again in their order.
Feeds take publications from the moment the catalog is open; storing and executing begin once Spark is there.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from tocsin.data import conflicts
from tocsin.data.channels.execution import Execution
from tocsin.data.channels.noderesults import NodeResults
from tocsin.data.channels.runner import Runner
from tocsin.data.channels.shared import SharedChannels
from tocsin.data.compiler.compiler import Compiler
from tocsin.data.conflicts import find
from tocsin.data.fence import Fence
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.location import DATASETS, DEAD_LETTERS, open_lake
from tocsin.data.lake.table import VERSION, Table
from tocsin.data.live_channels import LiveChannels
from tocsin.data.live_feeds import LiveFeeds
from tocsin.data.removal import Removable, fresh_directory, set_aside
from tocsin.data.session import wait_for_session
from tocsin.data.store import Store
from tocsin.data.store.brokers import Broker
from tocsin.errors import StorageError
from tocsin.schema.arrow import record_schema
from tocsin.schema.definitions import Channel, Dataset, Definition, Feed
from tocsin.schema.loading import load_file
from tocsin.settings import Settings

if TYPE_CHECKING:
    from tocsin.data.sharing.heads import Heads


class Catalog:
    """Everything that was created. Changes come one at a time; looking is free.

    Args:
        spark: the session, or the promise of one.
        executed: called after each execution.
        dropped: called with the name and the last incarnation of a channel that is no more.
        changed: called with a channel that has other terms than before.
        failing: called with the name of a channel that fails again and again, and a reason without anybody's values.
        fence: around the data directory, by which whoever takes over keeps this one from writing.
        heads: where nodes share the slices of feeds.
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
        fence: Fence | None = None,
        heads: Heads | None = None,
    ) -> None:
        self._settings, self._store = settings, store
        self.spark = partial(wait_for_session, spark)
        self._directory = settings.data.directory.resolve()
        self.changing = threading.RLock()
        self.datasets: dict[str, Dataset] = {}
        self.tables: dict[str, Table] = {}
        self.runner = Runner(self.tables, settings.channels, executed, failing)
        self.compiler = Compiler(self._directory / "compiled", self.datasets, self.spark)
        self.scratch = fresh_directory(self._directory / "scratch")
        definitions = [stored.definition for stored in store.definitions.all()]
        has_datasets = any(isinstance(each, Dataset) for each in definitions)
        self.lake = open_lake(settings, store.identity, has_datasets, fence)
        _settle_removals((self._local(), self.lake), definitions)
        filled = (self.datasets, self.tables, self.runner, self.spark)
        self.live_feeds = LiveFeeds(settings, store, *filled, self.lake, self.scratch, heads)
        self.pipelines = self.live_feeds.pipelines
        try:
            channels = self._open(definitions)
            parts = (self.tables, self.compiler, self.runner, self.lake)
            self.live = LiveChannels(settings, store, channels, *parts, dropped, changed)
            self._nodes = self._node_results(heads) if heads is not None else None
        except BaseException:
            self.live_feeds.stop()
            raise

    def start(self) -> None:
        """Begins to store and to execute, once Spark is there."""
        with self.changing:
            spark = self.spark()
            self.live_feeds.start(spark)
            self.live.start(spark, self._nodes)

    def stop(self) -> None:
        """Ends the executions and the storing, after those at hand."""
        if self._nodes is not None:
            self._nodes.shared.stop()
        self.runner.stop()
        self.live_feeds.stop()

    @property
    def feeds(self) -> dict[str, Feed]:
        """The feeds by name."""
        return self.live_feeds.definitions

    @property
    def channels(self) -> dict[str, Channel]:
        """The channels by name."""
        return self.live.definitions

    def dataset(self, name: str) -> Dataset:
        """The dataset of that name, in any case."""
        return find(self.datasets, name, "dataset")

    def create_dataset(self, dataset: Dataset) -> None:
        """Makes a dataset, or one anew that holds nothing yet."""
        conflicts.check_dataset(self, dataset)
        # One of that name that was dropped must be gone before it could be taken for this one.
        if dataset.name not in self.datasets:
            self._dataset_folder(dataset.name).finish_removal()
        with set_aside(*self._removables(dataset.name) if dataset.name in self.datasets else ()):
            self._store.definitions.put(dataset)
        self._open_dataset(dataset)

    def create_feed(self, feed: Feed) -> None:
        """Makes a feed, or replaces it."""
        conflicts.check_feed(self, feed)
        self.live_feeds.create(feed)

    def drop_dataset(self, name: str) -> None:
        """Removes a dataset and its records."""
        dataset = self.dataset(name)
        conflicts.check_unused(self, dataset.name, "dropped")
        with set_aside(*self._removables(dataset.name)):
            self._store.definitions.remove(Dataset, dataset.name)
        del self.tables[dataset.name], self.datasets[dataset.name]

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

    def _open(self, definitions: list[Definition]) -> list[Channel]:
        """Opens datasets and feeds; the channels that are left."""
        for definition in definitions:
            if isinstance(definition, Dataset):
                self._open_dataset(definition)
        self.live_feeds.open([definition for definition in definitions if isinstance(definition, Feed)])
        return [definition for definition in definitions if isinstance(definition, Channel)]

    def _open_dataset(self, dataset: Dataset) -> None:
        folder, columns = self._dataset_folder(dataset.name), record_schema(dataset.columns)
        folder.finish_removal()
        self.tables[dataset.name] = Table(folder, columns, self._settings.lake.recent_bytes)
        self.datasets[dataset.name] = dataset

    def _node_results(self, heads: Heads) -> NodeResults:
        kept = (self.live.subscriptions, self._store.set_aside)
        shared = SharedChannels(self.lake, self._store.term, self.tables, self.datasets, *kept, heads)
        return NodeResults(self.lake, self.tables, shared)

    def _removables(self, dataset: str) -> list[Removable]:
        """What belongs to a dataset; ids of one that is no more would keep records from the next of that name."""
        local = (self._local(kind, dataset) for kind in ("ids", "node-ids"))
        return [*local, self._dataset_folder(dataset)]

    def _dataset_folder(self, dataset: str) -> Folder:
        return self.lake.below(DATASETS).below(dataset)

    def _local(self, *names: str) -> Folder:
        """A directory of what stays with this process."""
        return DirectoryFolder(self._directory.joinpath(*names))


def _settle_removals(roots: Iterable[Folder], definitions: Iterable[Definition]) -> None:
    """Ends the removals below ``roots``, or undoes them where what they belong to is still defined."""
    known = {(type(definition), definition.name): definition for definition in definitions}
    for root in {folder.url: folder for folder in roots}.values():
        for place in map(root.below, root.folders()):
            for folder in place.unfinished_removals():
                if _is_missed(place, folder, known) and not folder.is_there():
                    folder.put_back()
                else:
                    folder.finish_removal()


def _is_missed(place: Folder, folder: Folder, known: dict[tuple[type[Definition], str], Definition]) -> bool:
    if place.name == DEAD_LETTERS:
        return (Feed, folder.name) in known
    dataset = known.get((Dataset, folder.name)) if place.name == DATASETS else None
    # One that was replaced by another with other columns is not missed.
    return isinstance(dataset, Dataset) and _fits(folder.aside, dataset)


def _fits(folder: Folder, dataset: Dataset) -> bool:
    """Whether the table in a folder has the columns of a dataset."""
    try:
        Table(folder, record_schema(dataset.columns))
    except StorageError:
        return False
    return True
