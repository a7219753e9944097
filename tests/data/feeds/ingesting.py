"""A feed whose log is in a directory or in Kafka, its dataset, and an ingestion that starts and stops again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from tests.kafka import KafkaServer
from tests.waiting import until
from tocsin.data.feeds.identity import SeenIds
from tocsin.data.feeds.ingest import DEAD_LETTERS, Ingestion, positions
from tocsin.data.feeds.kafka import KafkaLog
from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.logs import PublicationLog
from tocsin.data.lake.table import Table
from tocsin.data.language.parser import CreateDataset, parse
from tocsin.data.store import Store
from tocsin.schema.arrow import arrow_type
from tocsin.schema.definitions import Dataset, DatasetKind, Feed
from tocsin.settings import FeedsSettings
from tocsin.slices.assignment import slice_by_hash

APPEND = "CREATE DATASET Reports (id STRING, value BIGINT) PRIMARY KEY id"
UNKEYED = "CREATE DATASET Reports (id STRING, value BIGINT)"
KEYED = "CREATE KEYED DATASET Reports (id STRING, value BIGINT) PRIMARY KEY id"


class Ingesting:
    """What a process does with one feed, a step at a time.

    Args:
        statement: the CREATE DATASET statement.
        processed_by: the feed's function.
        kafka: where the log is, instead of in the directory.
        settings: of the feeds, where they are not quick enough for a test.
    """

    def __init__(
        self,
        spark: SparkSession,
        directory: Path,
        statement: str,
        slices: int = 3,
        processed_by: str = "",
        kafka: KafkaServer | None = None,
        **settings: Any,
    ) -> None:
        (parsed,) = parse(statement)
        assert isinstance(parsed, CreateDataset)
        self.dataset: Dataset = parsed.definition
        first = self.dataset.columns[0].name
        self.feed = Feed("reports", self.dataset.name, first, slices, processed_by=processed_by)
        self.commits = 0
        self._spark, self._directory = spark, directory
        quick = {"retry_after_seconds": 0.05, "append_commit_ms": 0, "keyed_commit_ms": 0, **settings}
        self._settings = msgspec.convert(quick, FeedsSettings)
        self.table = Table(directory / "dataset", self._schema())
        self.dead_letters = Table(directory / "dead-letters", DEAD_LETTERS)
        self._store = Store(directory)
        self.log = self._embedded() if kafka is None else self._in(kafka)
        self.ingestion: Ingestion | None = None

    def start(self) -> Ingestion:
        """Starts an ingestion, as a new process would."""
        unique = self.dataset.kind is DatasetKind.APPEND and self.dataset.primary_key is not None
        self.ingestion = Ingestion(
            self._spark,
            self.feed,
            self.dataset,
            self.table,
            self.dead_letters,
            feed_log=self.log,
            scratch=self._directory,
            seen=SeenIds(self._directory / "ids") if unique else None,
            settings=self._settings,
            committed=self._committed,
        )
        self.ingestion.start()
        return self.ingestion

    def stop(self) -> None:
        if self.ingestion is not None:
            self.ingestion.stop()
        self.ingestion = None

    def reopen(self) -> None:
        """What the next process finds."""
        self.stop()
        self.table = Table(self._directory / "dataset", self._schema())
        self.dead_letters = Table(self._directory / "dead-letters", DEAD_LETTERS)

    def close(self) -> None:
        self.stop()
        self.log.close()
        self._store.close()

    def publish(self, *records: dict[str, Any]) -> None:
        """Appends records in the slices of their first columns."""
        slices: dict[int, list[bytes]] = {}
        for record in records:
            index = slice_by_hash(record[self.feed.sliced_by], self.feed.slices)
            slices.setdefault(index, []).append(json.dumps(record).encode())
        self.log.append(slices)

    def drain(self) -> None:
        """Waits until the dataset has everything."""
        until(lambda: positions(self.table, self.feed) == self.log.ends())

    def rows(self) -> list[dict[str, Any]]:
        """The dataset, by its first column."""
        names = [column.name for column in self.dataset.columns]
        return sorted(self.table.read(columns=names).to_pylist(), key=lambda row: str(row[names[0]]))

    def letters(self) -> list[dict[str, Any]]:
        """The dead letters, in the order of the log."""
        found = self.dead_letters.read(columns=["slice", "position", "line", "reason"]).to_pylist()
        return sorted(found, key=lambda letter: (letter["slice"], letter["position"]))

    def _embedded(self) -> PublicationLog:
        read = positions(self.table, self.feed)
        return FeedLog(self._directory / "feed", self.feed.slices, 1 << 20, read).open()

    def _in(self, kafka: KafkaServer) -> PublicationLog:
        read = positions(self.table, self.feed)
        return KafkaLog(kafka.servers, kafka.prefix(), self.feed, self._store.topics, read).open()

    def _committed(self) -> None:
        self.commits += 1

    def _schema(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in self.dataset.columns])


def numbered(numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Records r0, r1, … with their numbers."""
    return [{"id": f"r{number}", "value": number} for number in numbers]


Make = Callable[..., Ingesting]
