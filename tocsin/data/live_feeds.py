"""The feeds that there are, each with its pipeline, from definition to removal.

A crash may interrupt each change anywhere: a log is let go of only once everything in it is stored, and what belongs
to a feed is set aside until the store knows of the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession

from tocsin.data.channels.runner import Runner
from tocsin.data.conflicts import find
from tocsin.data.feeds.logs import EMBEDDED, require_partitions
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.location import DEAD_LETTERS
from tocsin.data.lake.table import Table
from tocsin.data.pipeline import Pipeline
from tocsin.data.removal import Removable, discard, set_aside
from tocsin.data.store import Store
from tocsin.errors import ConflictError
from tocsin.schema.definitions import Dataset, Feed
from tocsin.settings import Settings

if TYPE_CHECKING:
    from tocsin.data.sharing.heads import Heads

_DRAIN_SECONDS: Final = 60
# While Kafka is away, each that is opened waits for it.
_OPENED_AT_ONCE: Final = 64


class LiveFeeds:
    """All feeds, by name in ``pipelines``. Changes come one at a time; looking is free.

    Args:
        datasets, tables: what feeds fill.
        runner: of the channels, which is told what is stored; once it runs, feeds store.
        spark: gives the session.
        lake: where dead letters are.
        scratch: for temporary files.
        heads: where nodes share the slices of feeds.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        datasets: Mapping[str, Dataset],
        tables: Mapping[str, Table],
        runner: Runner,
        spark: Callable[[], SparkSession],
        lake: Folder,
        scratch: Path,
        heads: Heads | None = None,
    ) -> None:
        self._settings, self._store, self._heads = settings.feeds, store, heads
        self._datasets, self._tables, self._runner = datasets, tables, runner
        self._spark, self._lake, self._scratch = spark, lake, scratch
        self._directory = settings.data.directory.resolve()
        self.pipelines: dict[str, Pipeline] = {}

    @property
    def definitions(self) -> dict[str, Feed]:
        """What was said of each."""
        return {name: pipeline.feed for name, pipeline in self.pipelines.items()}

    def find(self, name: str) -> Pipeline:
        """The feed of that name, in any case."""
        return find(self.pipelines, name, "feed")

    def open(self, feeds: Sequence[Feed]) -> None:
        """Takes publications for feeds that are defined; those whose log cannot be opened keep no others waiting."""
        with ThreadPoolExecutor(_OPENED_AT_ONCE if self._settings.log != EMBEDDED else 1) as opening:
            opened = [(feed.name, opening.submit(self._open, feed, patience=True)) for feed in feeds]
        self.pipelines |= {name: each.result() for name, each in opened if each.exception() is None}
        for _, each in opened:
            each.result()

    def _open(self, feed: Feed, *, patience: bool) -> Pipeline:
        dataset = find(self._datasets, feed.dataset, "dataset")
        place = (self._directory, self._lake, self._settings, self._store.topics)
        told = (self._runner.committed, self._runner.arriving, self._heads, self._runner.matched)
        return Pipeline(feed, dataset, self._tables[dataset.name], *place, *told, patience=patience)

    def start(self, spark: SparkSession) -> None:
        """Has all of them store what was published."""
        for pipeline in self.pipelines.values():
            pipeline.start(spark, self._scratch)

    def stop(self) -> None:
        """Ends the storing, after what is at hand."""
        for pipeline in self.pipelines.values():
            pipeline.stop()

    def create(self, feed: Feed) -> None:
        """Makes a feed, or replaces it: one that is sliced otherwise once everything in its log is stored."""
        if feed.name in self.pipelines:
            self._replace(feed)
        else:
            discard(self._dead_letters(feed.name))
            self._add(feed)

    def drop(self, name: str) -> None:
        """Removes a feed with its dead letters, once everything in its log is stored; what others keep is theirs."""
        pipeline = self.find(name)
        letters, drains = self._dead_letters(pipeline.feed.name), not pipeline.feed.topic
        with self._end(pipeline.feed.name, letters, drains=drains):
            self._store.definitions.remove(Feed, pipeline.feed.name)
        pipeline.log.remove()

    def _replace(self, feed: Feed) -> None:
        self._check_slices(feed)
        known = self.pipelines[feed.name].feed
        # Positions in a topic of others stay what they are, however many partitions are added to it.
        keeps_log = feed.same_log(known) or (feed.topic != "" and feed.topic == known.topic)
        with self._pause(feed.name) if keeps_log else self._end(feed.name):
            self._store.definitions.put(feed)
        self._begin(feed)

    def _check_slices(self, feed: Feed) -> None:
        known = self.pipelines[feed.name].feed
        if feed.topic:
            if (feed.topic, feed.slices) != (known.topic, known.slices):
                require_partitions(feed, self._settings)
        elif self._settings.log != EMBEDDED and feed.slices != known.slices:
            raise ConflictError(
                f"the log of feed {feed.name} is a topic of {known.slices} partitions: drop the feed to create it with "
                "others"
            )

    def _add(self, feed: Feed) -> None:
        """Defines a feed whose log can be had: what cannot would be in the way of the next start."""
        require_partitions(feed, self._settings)
        self.pipelines[feed.name] = self._open(feed, patience=False)
        try:
            self._store.definitions.put(feed)
        except Exception:
            self.pipelines.pop(feed.name).stop()
            raise
        self._start(feed)

    def _begin(self, feed: Feed) -> None:
        self.open([feed])
        self._start(feed)

    def _start(self, feed: Feed) -> None:
        if self._runner.started:
            self.pipelines[feed.name].start(self._spark(), self._scratch)

    @contextmanager
    def _end(self, name: str, *others: Removable, drains: bool = True) -> Iterator[None]:
        """While entered, a feed and its log are no more; for good if nothing fails. ``drains``: once all is stored."""
        if drains:
            # Without Spark nothing would come of waiting.
            self.pipelines[name].drain(_DRAIN_SECONDS if self._runner.started else 0)
        with self._pause(name), set_aside(DirectoryFolder(self._directory / "feeds" / name), *others):
            yield

    @contextmanager
    def _pause(self, name: str) -> Iterator[None]:
        """While entered, a feed is no more, but for its log; for good if nothing fails."""
        pipeline = self.pipelines[name]
        pipeline.admission.seal()
        pipeline.stop()
        del self.pipelines[name]
        try:
            yield
        except Exception:
            self._begin(pipeline.feed)
            raise

    def _dead_letters(self, feed: str) -> Folder:
        return self._lake.below(DEAD_LETTERS).below(feed)
