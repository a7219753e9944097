"""Channels that nodes are told of, without Spark and without nodes: real tables, subscriptions and files."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.data.channels.matches import NodeMatch
from tocsin.data.channels.shared import SharedChannels, Telling
from tocsin.data.compiler.check import Compiled
from tocsin.data.disk import Disk
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.location import TOLD_NODES
from tocsin.data.lake.table import Table
from tocsin.data.nodes.channels import NodeChannel
from tocsin.data.store import Store
from tocsin.data.subscriptions import SubscriptionRegistry
from tocsin.schema.arrow import record_schema
from tocsin.schema.definitions import Channel, ChannelKind, Column, Dataset, DatasetKind
from tocsin.schema.types import parse_type

_DISK = Disk(sync=False)


@dataclass
class Line:
    """Notes what nodes are told."""

    filled: set[str] = field(default_factory=lambda: {"Reports"})
    told: list[NodeChannel] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)

    def datasets(self) -> Collection[str]:
        return self.filled

    def tell(self, dataset: str, channel: NodeChannel) -> None:
        assert dataset == "Reports"
        self.told.append(channel)

    def withdraw(self, dataset: str, channel: str) -> None:
        assert dataset == "Reports"
        self.withdrawn.append(channel)


class TellingSite:
    """A head that has Reports, which nodes fill, People, which channels read as a whole, and subscriptions."""

    def __init__(self, directory: Path, store: Store) -> None:
        self.lake, self.store, self.line = DirectoryFolder(directory / "lake", _DISK), store, Line()
        store.brokers.register("b", "http://b")
        columns = (Column("id", parse_type("STRING")),)
        self.datasets = {name: Dataset(name, DatasetKind.APPEND, columns, "id") for name in ("Reports", "People")}
        self.tables = {name: self._table(dataset) for name, dataset in self.datasets.items()}
        self.subscriptions = SubscriptionRegistry(store, self.lake.below("subscriptions"))
        self.channels: dict[str, Compiled] = {}
        self.shared = SharedChannels(
            self.lake, 7, self.tables, self.datasets, self.subscriptions, store.set_aside, self.line
        )
        self.lake.below(TOLD_NODES).make()

    def _table(self, dataset: Dataset) -> Table:
        return Table(self.lake.below("datasets").below(dataset.name), record_schema(dataset.columns), disk=_DISK)

    def define(self, name: str, whole: Collection[str] = (), statement: str = "SELECT 1") -> Compiled:
        channel = Channel(name, ChannelKind.CONTINUOUS, (Column("wanted", parse_type("STRING")),), "SELECT 1")
        self.store.definitions.put(channel)
        compiled = Compiled(channel, statement, frozenset(whole), frozenset({"Reports"}), True, (), True)
        self.channels[name] = compiled
        return compiled

    def subscribe(self, name: str, *wanted: str) -> list[int]:
        values: Sequence[Mapping[str, object]] = [{"wanted": value} for value in wanted]
        return self.subscriptions.attach(self.channels[name].channel, "b", values)

    def set_aside(self, name: str, *bes: int) -> None:
        self.store.set_aside.put(name, dict.fromkeys(bes, "it fails"), time.time() + 1000)

    def look(self) -> None:
        """As is done again and again, but without a limit to how often."""
        for tellings in self.shared._tellings.values():
            for telling in tellings:
                telling.next = 0.0
        self.shared.look(self.channels.values(), lambda _: True)

    def change(self, dataset: str, told: bool = True) -> None:
        """Something comes into a dataset, of which channels are told a moment later."""
        self.tables[dataset].append(pa.table({"id": [f"r{self.tables[dataset].version}"]}), {})
        if told:
            self.shared.committed(dataset)

    def tellings(self, name: str) -> list[Telling]:
        return self.shared._tellings.get(name, [])

    def told_files(self) -> set[str]:
        return set(self.lake.below(TOLD_NODES).files())

    def told_rows(self, name: str) -> list[dict[str, object]]:
        """The rows of a file that nodes are told of."""
        content = self.lake.below(TOLD_NODES).read(name)
        rows: list[dict[str, object]] = pq.read_table(pa.BufferReader(content)).to_pylist()
        return rows


def match_of(channel: NodeChannel, *files: str) -> NodeMatch:
    """That a node has matched what it was told, and begins at this moment."""
    return NodeMatch(channel.name, channel.tag, time.monotonic(), files)
