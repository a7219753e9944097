"""A shared feed whose nodes match channels: what the head tells them, and what its own executions would find."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.data.nodes.sharing import Sharing, dataset_of
from tests.waiting import until
from tocsin.data.channels.execution import Executor
from tocsin.data.channels.frames import ExecutionRound
from tocsin.data.channels.letters import DeadLetters
from tocsin.data.channels.matches import NodeMatch
from tocsin.data.channels.noderesults import NodeResults
from tocsin.data.channels.shared import SharedChannels
from tocsin.data.compiler.check import Compiled, check
from tocsin.data.disk import Disk
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.location import TOLD_NODES
from tocsin.data.lake.table import Table
from tocsin.data.language.forms import CreateChannel
from tocsin.data.language.parser import parse
from tocsin.data.nodes.channels import MatchingLimits, NodeChannel
from tocsin.data.nodes.processing import SliceProcessing
from tocsin.data.results import Cache, ChannelResults
from tocsin.data.store import Store
from tocsin.data.subscriptions import SubscriptionRegistry
from tocsin.schema.arrow import record_schema
from tocsin.settings import ChannelsSettings

PEOPLE = dataset_of("CREATE KEYED DATASET People (name STRING, likes BIGINT) PRIMARY KEY name")
OVER = "CREATE CONTINUOUS CHANNEL Over(least BIGINT) AS SELECT r.id FROM Reports r WHERE r.value >= least AND is_new(r)"
LIKED = """CREATE CONTINUOUS CHANNEL Liked(who STRING) AS
SELECT r.id, p.likes FROM Reports r JOIN People p ON p.likes = r.value WHERE p.name = who AND is_new(r)"""
SHARES = """CREATE CONTINUOUS CHANNEL Shares(whole BIGINT) AS
SELECT r.id, whole DIV r.value AS share FROM Reports r WHERE is_new(r)"""
PATIENT = MatchingLimits(rows_bytes=1 << 20, seconds=60.0, workers=2)
_DISK = Disk(sync=False)

Found = list[tuple[int, str]]


class Tellings(dict[str, NodeChannel]):
    """What nodes are told, by the channels' names."""

    def datasets(self) -> Collection[str]:
        return {"Reports"}

    def tell(self, dataset: str, channel: NodeChannel) -> None:
        assert dataset == "Reports"
        self[channel.name] = channel

    def withdraw(self, dataset: str, channel: str) -> None:
        assert dataset == "Reports"
        del self[channel]


class MatchingSite(Sharing):
    """The head's side: datasets, subscriptions, tellings, and results that nodes have offered."""

    def __init__(self, spark: SparkSession, directory: Path, store: Store, matching: MatchingLimits = PATIENT) -> None:
        self.spark = spark
        super().__init__(directory, matching=matching, matched=self._matched)
        lake = DirectoryFolder(directory / "lake", _DISK)
        self._store, self.lake = store, lake
        store.brokers.register("b", "http://b")
        self.people = Table(lake.below("datasets").below("People"), record_schema(PEOPLE.columns), disk=_DISK)
        self.tables = {"Reports": self.table, "People": self.people}
        self.datasets = {"Reports": self.dataset, "People": PEOPLE}
        self.subscriptions = SubscriptionRegistry(store, lake.below("subscriptions"))
        self.tellings = Tellings()
        kept = (self.subscriptions, store.set_aside)
        self.shared_channels = SharedChannels(lake, 1, self.tables, self.datasets, *kept, self.tellings)
        self.results = NodeResults(lake, self.tables, self.shared_channels)
        lake.below(TOLD_NODES).make()
        letters = DeadLetters(lake.below("letters"))
        using = (spark, self.tables, self.subscriptions, store.set_aside, letters, ChannelsSettings())
        self._head, self._adopting = Executor(*using), Executor(*using, self.results)
        self.compiled: dict[str, Compiled] = {}
        self.seen: dict[str, ChannelResults] = {}

    def _matched(self, table: Table, version: int, batches: Sequence[Mapping[str, NodeMatch]]) -> None:
        self.results.put(table, version, batches)

    def define(self, text: str, *values: Mapping[str, object]) -> list[int]:
        """Creates a channel and subscribes to it."""
        (parsed,) = parse(text)
        assert isinstance(parsed, CreateChannel)
        channel = parsed.definition
        self._store.definitions.put(channel)
        self.compiled[channel.name] = check(self.spark, channel, self.datasets)
        self.seen[channel.name] = ChannelResults(channel.name, self.lake.below("results").below(channel.name), Cache(0))
        return self.subscribe(channel.name, *values)

    def subscribe(self, name: str, *values: Mapping[str, object]) -> list[int]:
        return self.subscriptions.attach(self.compiled[name].channel, "b", values)

    def set_aside(self, name: str, *bes: int) -> None:
        self._store.set_aside.put(name, dict.fromkeys(bes, "it fails"), time.time() + 1000)

    def change_people(self, **likes: int) -> None:
        # As is done all the time: what was begun until now was begun with the newest.
        self.shared_channels._see()
        rows = pa.table({"name": list(likes), "likes": list(likes.values())})
        self.people.merge(rows, "name", {})
        self.shared_channels.committed("People")

    def teach(self, *nodes: SliceProcessing) -> None:
        """Nodes are told what there is now, and are ready."""
        for tellings in self.shared_channels._tellings.values():
            for telling in tellings:
                telling.next = 0.0
        self.shared_channels.look(self.compiled.values(), lambda _: True)
        for node in nodes:
            node.learn(self.tellings.values())
        until(lambda: all(set(node.channels) == self.tellings.keys() for node in nodes))

    def take(self, name: str) -> Found | None:
        """What nodes have found of a channel in what is new to it, which it has seen then; None without that."""
        results = self.seen[name]
        rows = self.results.find(self.compiled[name], results, "Reports", self.table.version)
        if rows is None:
            return None
        results.skip({"Reports": self.table.version})
        return found_in(rows)

    def execute(self, name: str) -> Found:
        """What the head finds by itself, which the channel has seen then."""
        return self._run(self._head, name)[0]

    def execute_or_adopt(self, name: str) -> tuple[Found, bool]:
        """An execution as it is made, by what nodes have found if that counts; and whether it did."""
        return self._run(self._adopting, name)

    def _run(self, executor: Executor, name: str) -> tuple[Found, bool]:
        results = self.seen[name]
        moment = ExecutionRound(self.spark, self.tables, [])
        try:
            execution = executor.run(self.compiled[name], results, moment)
        finally:
            moment.close()
        pulled = results.pull(execution.number, execution.number)
        rows = [(one.be, bytes(one.payload).decode()) for part in pulled for one in part.results]
        return sorted((be, json.dumps(row)) for be, payload in rows for row in json.loads(payload)), execution.by_nodes

    def peek(self, name: str) -> Found:
        """What the head would find by itself in what is new; the channel has not seen it then."""
        kept, place = self.seen[name], self.lake.below("oracle").below(f"{name}-{next(self._numbers)}")
        self.seen[name] = ChannelResults(name, place, Cache(0))
        self.seen[name].skip({"Reports": kept.seen_version("Reports")})
        try:
            return self.execute(name)
        finally:
            self.seen[name] = kept

    def left(self, name: str) -> set[str]:
        """Results that nodes have written, and nobody has taken."""
        return {file for file in self.lake.below("results").below(name).files() if file.startswith("node-")}

    def close(self) -> None:
        """Ends it."""
        self.log.close()
        for name in self.compiled:
            self._head.forget(name)
            self._adopting.forget(name)


def found_in(rows: pa.Table) -> Found:
    """Rows of results, one for each row that a subscription is told."""
    parts = [(row["be"], row["payload"]) for row in rows.to_pylist()]
    return sorted((be, json.dumps(row)) for be, payload in parts for row in json.loads(payload))
