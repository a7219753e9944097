"""A draft of the catalog, on which statements are tried before the first of them is carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tocsin.data import conflicts
from tocsin.data.catalog import Catalog
from tocsin.data.compiler.check import Compiled
from tocsin.data.conflicts import find
from tocsin.data.language.forms import Thing
from tocsin.schema.definitions import Channel, Dataset, Definition, Feed
from tocsin.schema.loading import load_file


class Draft:
    """What a catalog would hold. It refuses what the catalog would refuse, and changes nothing but itself.

    What it cannot know: whether there will be room on the disk, and records that come while statements are carried out.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.datasets = dict(catalog.datasets)
        self.feeds = dict(catalog.feeds)
        self.channels = dict(catalog.channels)
        self._read = {name: {each for each in self.datasets if catalog.uses(name, each)} for name in self.channels}
        self._filled = {name for name in self.datasets if catalog.has_records(name)}
        self._compiled: Callable[[Channel], Compiled] = catalog.compiler.over(self.datasets).compile

    def uses(self, channel: str, dataset: str) -> bool:
        """Whether the body of a channel reads a dataset."""
        return dataset in self._read[channel]

    def has_records(self, dataset: str) -> bool:
        """Whether there are records in a dataset."""
        return dataset in self._filled

    def create_dataset(self, dataset: Dataset) -> None:
        """Makes a dataset, or one anew."""
        conflicts.check_dataset(self, dataset)
        self.datasets[dataset.name] = dataset

    def create_feed(self, feed: Feed) -> None:
        """Makes a feed, or gives it another assignment."""
        conflicts.check_feed(self, feed)
        self.feeds[feed.name] = feed

    def create_channel(self, channel: Channel) -> None:
        """Has Spark check a channel."""
        compiled = self._compiled(channel)
        self.channels[channel.name], self._read[channel.name] = channel, set(compiled.whole | compiled.fresh)

    def drop_dataset(self, name: str) -> None:
        """Removes a dataset."""
        dataset = find(self.datasets, name, Thing.DATASET)
        conflicts.check_unused(self, dataset.name, "dropped")
        del self.datasets[dataset.name]
        self._filled.discard(dataset.name)

    def drop_feed(self, name: str) -> None:
        """Removes a feed."""
        del self.feeds[find(self.feeds, name, Thing.FEED).name]

    def drop_channel(self, name: str) -> None:
        """Removes a channel."""
        del self.channels[find(self.channels, name, Thing.CHANNEL).name]

    def load(self, name: str, path: Path | None) -> int | None:
        """Reads a file, if it is at hand, as far as to know that it can be loaded."""
        dataset = find(self.datasets, name, Thing.DATASET)
        conflicts.check_loaded(self, dataset)
        return load_file(dataset, path).num_rows if path else 0

    def list_things(self, what: str) -> list[dict[str, Any]]:  # noqa: ARG002
        """Nothing: what is shown is what is there by then."""
        return []

    def describe_thing(self, what: Thing, name: str) -> list[dict[str, Any]]:
        """Nothing, of something that must be there."""
        kinds: dict[Thing, Mapping[str, Definition]]
        kinds = {Thing.DATASET: self.datasets, Thing.FEED: self.feeds, Thing.CHANNEL: self.channels}
        find(kinds[what], name, what)
        return []
