"""What a channel's statement is bound to at a node: its subscriptions and the datasets that it reads as a whole."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tocsin.data.channels.frames import SubscriptionFrames, register
from tocsin.data.compiler.rewrite import SUBSCRIPTIONS
from tocsin.data.ids import NONE
from tocsin.data.lake import frames
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.table import VERSION
from tocsin.data.nodes.channels import DatasetFiles, NodeChannel
from tocsin.data.subscriptions import Segments
from tocsin.data.subscriptions.rows import BE, schema
from tocsin.schema.arrow import record_schema


class NodeRelations:
    """Views, made again only of what has changed.

    Different channels may be asked for at the same time, one channel only by one thread at a time. Raises OSError, or
    what Spark has for it, if a file is not there any more.

    Args:
        told: the lake's folder with the subscriptions that came and went.
    """

    def __init__(self, spark: SparkSession, told: Folder) -> None:
        self._spark, self._told = spark, told
        self._subscribed = SubscriptionFrames(spark)
        self._segments: dict[str, Segments] = {}
        self._datasets: dict[tuple[str, str], tuple[list[str], str]] = {}

    def views(self, channel: NodeChannel) -> dict[str, str]:
        """The views by the names that they have in the statement; valid until the next call for the same channel."""
        bound = {SUBSCRIPTIONS: self._subscribed.view(channel.name, self._subscriptions(channel), NONE)}
        return bound | {each.dataset.name: self._whole(channel.name, each) for each in channel.whole}

    def drop(self, channel: str) -> None:
        """Lets a channel go."""
        self._subscribed.drop(channel)
        self._segments.pop(channel, None)
        for key in [key for key in list(self._datasets) if key[0] == channel]:
            self._spark.catalog.dropTempView(self._datasets.pop(key)[1])

    def close(self) -> None:
        """Lets all go."""
        for channel in self._segments.keys() | {name for name, _ in self._datasets}:
            self.drop(channel)

    def _subscriptions(self, channel: NodeChannel) -> Segments:
        name, files = channel.name, channel.subscriptions
        held = self._segments.get(name)
        if held is None or held.generation != files.generation:
            columns = schema(channel.compiled.channel.parameters)
            added, removed = self._read(files.added, columns), self._read(files.removed, pa.schema([columns.field(BE)]))
            held = self._segments[name] = Segments(
                files.base, files.base_rows, added, removed.column(0).combine_chunks(), files.rows, files.generation
            )
        return held

    def _read(self, name: str, columns: pa.Schema) -> pa.Table:
        if not name:
            return columns.empty_table()
        return pq.read_table(pa.BufferReader(self._told.read(name)), schema=columns)

    def _whole(self, channel: str, of: DatasetFiles) -> str:
        key = channel, of.dataset.name
        held = self._datasets.get(key)
        if held is not None and held[0] == of.files:
            return held[1]
        if held is not None:
            # Should the new files be gone, what was there before is told anew perhaps.
            del self._datasets[key]
            self._spark.catalog.dropTempView(held[1])
        columns = record_schema(of.dataset.columns).append(pa.field(VERSION, pa.int64()))
        view = register(frames.of_files(self._spark, columns, of.files).drop(VERSION))
        self._datasets[key] = of.files, view
        return view
