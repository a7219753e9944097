"""One Delta table: appended to, merged into or overwritten, each commit with markers that say how far it got.

A marker is a Delta transaction identifier, atomic with the data of its commit; it is the only record of progress there
is, so a restart that reads it neither loses nor repeats anything. Every row carries in ``_v`` the number of the commit
that brought it, our own count of data commits. What is new since a number is then a filter, and stays right when
files are compacted or vacuumed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction
from pyarrow import dataset

from tocsin.errors import StorageError

VERSION = "_v"
_VERSION_MARKER = "version"
_CONFIGURATION = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 1 hours",
    "delta.dataSkippingStatsColumns": VERSION,
}


@dataclass(frozen=True)
class Snapshot:
    """The files of a table at ``version``, each with the newest version of a row in it. Valid while it is held."""

    version: int
    files: tuple[tuple[str, int], ...]
    delta_version: int

    def paths(self, since: int = -1) -> list[str]:
        """The files that may hold rows newer than ``since``."""
        return [path for path, newest in self.files if newest > since]


class Table:
    """A Delta table with one writer, this process; its methods may be called from any thread.

    Args:
        path: the table's directory, made if missing.
        schema: its columns, without ``_v``.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.schema = schema.append(pa.field(VERSION, pa.int64()))
        self._lock = threading.RLock()
        self._recent: deque[tuple[float, int]] = deque()
        try:
            self._delta = DeltaTable(str(path))
        except TableNotFoundError:
            self._delta = DeltaTable.create(str(path), schema=self.schema, configuration=_CONFIGURATION)
        self._check_schema()
        self._snapshot = self._take_snapshot()

    @property
    def snapshot(self) -> Snapshot:
        """The newest committed state."""
        return self._snapshot

    @property
    def version(self) -> int:
        """The number of the newest data commit."""
        return self._snapshot.version

    def marker(self, name: str) -> int:
        """How far the commits got with ``name``; 0 if none ever said."""
        found = self._delta.transaction_version(name)
        return int(found) if found is not None else 0

    def append(self, rows: pa.Table, markers: Mapping[str, int]) -> Snapshot:
        """Adds rows."""
        with self._committing() as version:
            write_deltalake(
                self._delta, self._stamped(rows, version), mode="append", commit_properties=_marked(version, markers)
            )
        return self._snapshot

    def merge(self, rows: pa.Table, key: str, markers: Mapping[str, int]) -> Snapshot:
        """Adds rows, each in the place of the one with the same key; the keys in ``rows`` must differ."""
        with self._committing() as version:
            merger = self._delta.merge(
                self._stamped(rows, version),
                f"t.`{key}` = s.`{key}`",
                source_alias="s",
                target_alias="t",
                commit_properties=_marked(version, markers),
            )
            merger.when_matched_update_all().when_not_matched_insert_all().execute()
        return self._snapshot

    def overwrite(self, rows: pa.Table, markers: Mapping[str, int]) -> Snapshot:
        """Replaces all rows."""
        with self._committing() as version:
            write_deltalake(
                self._delta, self._stamped(rows, version), mode="overwrite", commit_properties=_marked(version, markers)
            )
        return self._snapshot

    def mark(self, markers: Mapping[str, int]) -> Snapshot:
        """Moves markers on without any data."""
        with self._committing() as version:
            self._delta.create_write_transaction(
                [], "append", self._delta.schema(), commit_properties=_marked(version, markers)
            )
        return self._snapshot

    def adopt(self, files: list[AddAction], version: int, markers: Mapping[str, int]) -> Snapshot:
        """Commits files that others wrote into the table's directory, stamped with ``version`` (the next one)."""
        with self._committing() as expected:
            if version != expected:
                raise StorageError(f"{self.path.name}: written for version {version}, but {expected} is next")
            self._delta.create_write_transaction(
                list(files), "append", self._delta.schema(), commit_properties=_marked(version, markers)
            )
        return self._snapshot

    def delete(self, predicate: str) -> int:
        """Removes the rows that match; how many."""
        with self._lock, _storage_errors(self.path):
            removed = self._delta.delete(predicate)
            self._snapshot = self._take_snapshot()
        return int(removed.get("num_deleted_rows") or 0)

    def compact(self) -> None:
        """Merges small files."""
        with self._lock, _storage_errors(self.path):
            self._delta.optimize.compact()
            self._snapshot = self._take_snapshot()

    def vacuum(self, grace: float) -> int:
        """Removes the files that no snapshot of the last ``grace`` seconds needs; how many."""
        with self._lock, _storage_errors(self.path):
            # The snapshot before the first recent one was still the newest within the grace period.
            while len(self._recent) > 1 and self._recent[1][0] < time.monotonic() - grace:
                self._recent.popleft()
            versions = sorted({delta_version for _, delta_version in self._recent} | {self._delta.version()})
            removed = self._delta.vacuum(
                retention_hours=0, dry_run=False, enforce_retention_duration=False, keep_versions=versions
            )
            self._delta.create_checkpoint()
            self._delta.cleanup_metadata()
            self._snapshot = self._take_snapshot()
        return len(removed)

    def read(self, where: pc.Expression | None = None, columns: list[str] | None = None, since: int = -1) -> pa.Table:
        """Rows read here, without Spark: for the small answers. Files with nothing after ``since`` are passed over."""
        source = dataset.dataset(self._snapshot.paths(since), schema=self.schema, format="parquet")
        return source.to_table(filter=where, columns=columns)

    @contextmanager
    def _committing(self) -> Iterator[int]:
        with self._lock, _storage_errors(self.path):
            try:
                yield self.version + 1
            finally:
                self._snapshot = self._take_snapshot()

    def _stamped(self, rows: pa.Table, version: int) -> pa.Table:
        column = pa.array([version], pa.int64()).take(pa.array([0] * rows.num_rows, pa.int8()))
        return rows.append_column(self.schema.field(VERSION), column)

    def _take_snapshot(self) -> Snapshot:
        self._delta.update_incremental()
        actions = pa.table(self._delta.get_add_actions(flatten=True))
        newest = f"max.{VERSION}"
        versions = actions[newest].to_pylist() if newest in actions.column_names else [None] * actions.num_rows
        files = tuple(
            (str(self.path / path), version if version is not None else self._unknown_version())
            for path, version in zip(actions["path"].to_pylist(), versions, strict=True)
        )
        snapshot = Snapshot(self.marker(_VERSION_MARKER), files, self._delta.version())
        self._recent.append((time.monotonic(), snapshot.delta_version))
        return snapshot

    def _unknown_version(self) -> int:
        """For a file without statistics: as if it were new, so that it is never passed over."""
        return self.marker(_VERSION_MARKER)

    def _check_schema(self) -> None:
        found = pa.schema(self._delta.schema().to_arrow())
        stored, declared = ({f.name: str(f.type) for f in s} for s in (found, self.schema))
        if _plain(stored) != _plain(declared):
            raise StorageError(
                f"the table at {self.path} has columns {_plain(stored)}, but {_plain(declared)} were declared: "
                "drop the dataset and create it anew, or restore its definition"
            )


def _plain(columns: Mapping[str, str]) -> dict[str, str]:
    """Column types without the differences that do not matter: views, large variants, the name of a list's items."""
    same = {"large_": "", "_view": "", "<element: ": "<item: "}
    for old, new in same.items():
        columns = {name: text.replace(old, new) for name, text in columns.items()}
    return dict(columns)


def _marked(version: int, markers: Mapping[str, int]) -> CommitProperties:
    transactions = [Transaction(name, value) for name, value in {**markers, _VERSION_MARKER: version}.items()]
    return CommitProperties(app_transactions=transactions)


@contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    """The disk's refusals as ours; anything else is passed on."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise StorageError(f"writing {path} failed: {_reason(error)}") from error


def _reason(error: Any) -> str:
    text = str(error)
    if "No space left" in text or "os error 28" in text or "StorageFull" in text:
        return "the disk is full; free some space, and it goes on by itself"
    return text
