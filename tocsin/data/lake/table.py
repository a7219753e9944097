"""One Delta table: appended to, merged into or overwritten, each commit with markers that say how far it got.

A marker is a Delta transaction identifier, atomic with the data of its commit; it is the only record of progress there
is, so a restart that reads it neither loses nor repeats anything. Every row carries in ``_v`` the number of the commit
that brought it, our own count of data commits. What is new since a number is then a filter, and stays right when
files are compacted or vacuumed.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import AddAction
from pyarrow import dataset

from tocsin.data.lake.hardening import Hardening
from tocsin.data.lake.recent import Recent
from tocsin.data.lake.refusals import storage_errors
from tocsin.data.lake.schema import check_schema
from tocsin.errors import StorageError
from tocsin.log import get_logger

log = get_logger(__name__)

VERSION = "_v"
_VERSION_MARKER = "version"
_CONFIGURATION = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 1 hours",
    # Files are deleted by us, who know which are still being read; the log need not remember them.
    "delta.deletedFileRetentionDuration": "interval 1 seconds",
    "delta.dataSkippingStatsColumns": VERSION,
}


class File(NamedTuple):
    """A file of a table, with the oldest and the newest version of a row in it."""

    path: str
    oldest: int
    newest: int


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The files of a table at ``version``. They stay while it is held."""

    version: int
    files: tuple[File, ...]

    def after(self, since: int) -> list[File]:
        """The files that may hold rows newer than ``since``."""
        return [file for file in self.files if file.newest > since]

    def paths(self, since: int = -1) -> list[str]:
        """The paths of the files that may hold rows newer than ``since``."""
        return [file.path for file in self.after(since)]


class Table:
    """A Delta table with one writer, this process; its methods may be called from any thread.

    What can go wrong: the disk refuses (StorageError; nothing was committed, and the same call may be made again);
    the process dies (the next one finds the last whole commit, and removes what was left half done).

    Args:
        path: the table's directory, made if missing.
        schema: its columns, without ``_v``.
        recent_bytes: how much of what was appended last stays in memory.
    """

    def __init__(self, path: Path, schema: pa.Schema, recent_bytes: int = 0) -> None:
        self.path = path
        self.schema = schema.append(pa.field(VERSION, pa.int64()))
        self._lock = threading.RLock()
        # Taken before the lock by whatever removes files, so that rows can be appended while files are compacted.
        self._rewriting = threading.Lock()
        self._compacting = False
        self._retired: list[tuple[float, str]] = []
        self._held: weakref.WeakSet[Snapshot] = weakref.WeakSet()
        self._snapshot = Snapshot(0, ())
        # Looking one up in the Delta log takes a while; only this process changes them.
        self._markers: dict[str, int] = {}
        self._recent = Recent(recent_bytes)
        self._hardening = Hardening(path)
        with storage_errors(path):
            self._delta = self._opened()
            check_schema(path, pa.schema(self._delta.schema().to_arrow()), self.schema)
            self._refresh()
            now = time.monotonic()
            self._retired += [(now, leftover) for leftover in self._unknown()]

    @property
    def snapshot(self) -> Snapshot:
        """The newest committed state."""
        return self._snapshot

    @property
    def version(self) -> int:
        """The number of the newest data commit."""
        return self._snapshot.version

    def marker(self, name: str) -> int:
        """How far the commits got with ``name``; 0 if none ever said. Waits for a commit at hand to be complete."""
        with self._lock:
            if name not in self._markers:
                self._markers[name] = self._committed_marker(name)
            return self._markers[name]

    def recent(self, since: int, until: int) -> pa.Table | None:
        """What came after version ``since`` up to ``until``, without ``_v``, if it is little and still in memory."""
        return self._recent.between(since, until)

    def append(self, rows: pa.Table, markers: Mapping[str, int]) -> Snapshot:
        """Adds rows."""
        with self._committing(markers) as version:
            write_deltalake(
                self._delta, self._stamped(rows, version), mode="append", commit_properties=_marked(version, markers)
            )
            self._recent.add(version, rows)
        return self._snapshot

    def merge(self, rows: pa.Table, key: str, markers: Mapping[str, int]) -> Snapshot:
        """Adds rows, each in the place of the one with the same key; the keys in ``rows`` must differ."""
        with self._rewriting, self._committing(markers) as version:
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
        with self._rewriting, self._committing(markers) as version:
            write_deltalake(
                self._delta, self._stamped(rows, version), mode="overwrite", commit_properties=_marked(version, markers)
            )
        return self._snapshot

    def mark(self, markers: Mapping[str, int]) -> Snapshot:
        """Moves markers on without any data."""
        with self._committing(markers) as version:
            self._commit_files([], version, markers)
            self._recent.add(version, self.schema.empty_table().drop_columns(VERSION))
        return self._snapshot

    def adopt(self, files: list[AddAction], version: int, markers: Mapping[str, int]) -> Snapshot:
        """Commits files that others wrote into the table's directory, stamped with ``version`` (the next one)."""
        with self._committing(markers) as expected:
            if version != expected:
                raise StorageError(f"{self.path.name}: written for version {version}, but {expected} is next")
            self._commit_files(files, version, markers)
        return self._snapshot

    def delete(self, predicate: str) -> int:
        """Removes the rows that match; how many."""
        with self._rewriting, self._lock, storage_errors(self.path):
            self._recent.forget()
            removed = self._delta.delete(predicate)
            self._refresh()
        return int(removed.get("num_deleted_rows") or 0)

    def compact(self) -> None:
        """Merges small files; rows may be appended meanwhile."""
        with self._rewriting, storage_errors(self.path):
            with self._lock:
                self._compacting = True
            try:
                DeltaTable(str(self.path)).optimize.compact()
            finally:
                with self._lock:
                    self._compacting = False
                    self._refresh()

    def harden(self) -> None:
        """Returns when all that was committed would outlive a power cut."""
        with storage_errors(self.path):
            self._hardening.harden(self._snapshot.paths())

    def vacuum(self, grace: float) -> int:
        """Deletes the files that no held snapshot and none of the last ``grace`` seconds has; how many."""
        with self._lock:
            needed = {file.path for snapshot in self._held for file in snapshot.files}
            before = time.monotonic() - grace
            doomed = [path for since, path in self._retired if since <= before and path not in needed]
            gone = set(doomed)
            self._retired = [(since, path) for since, path in self._retired if path not in gone]
        with storage_errors(self.path):
            for path in doomed:
                Path(path).unlink(missing_ok=True)
        return len(doomed)

    def read(self, where: pc.Expression | None = None, columns: list[str] | None = None, since: int = -1) -> pa.Table:
        """Rows read here, without Spark: for the small answers. Files with nothing after ``since`` are passed over."""
        return pa.Table.from_batches(self.batches(where, columns, since), self._selected(columns))

    def batches(
        self, where: pc.Expression | None = None, columns: list[str] | None = None, since: int = -1
    ) -> Iterator[pa.RecordBatch]:
        """As :meth:`read`, a piece at a time."""
        snapshot = self._snapshot
        source = dataset.dataset(snapshot.paths(since), schema=self.schema, format="parquet")
        yield from source.to_batches(filter=where, columns=columns)

    def _selected(self, columns: list[str] | None) -> pa.Schema:
        return self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])

    def _opened(self) -> DeltaTable:
        try:
            return DeltaTable(str(self.path))
        except TableNotFoundError:
            return DeltaTable.create(str(self.path), schema=self.schema, configuration=_CONFIGURATION)

    @contextmanager
    def _committing(self, markers: Mapping[str, int]) -> Iterator[int]:
        with self._lock, storage_errors(self.path):
            version = self.version + 1
            try:
                yield version
            except Exception as error:
                self._refresh()
                if self.version != version:
                    self._clear_up()
                    raise
                # The commit is in; what failed came after it, such as a checkpoint, and is tried again after the next.
                log.warning("committed, with an error afterwards", table=self.path.name, reason=str(error))
            else:
                self._refresh()
            self._markers.update(markers)

    def _commit_files(self, files: list[AddAction], version: int, markers: Mapping[str, int]) -> None:
        self._delta.create_write_transaction(
            list(files), "append", self._delta.schema(), commit_properties=_marked(version, markers)
        )

    def _committed_marker(self, name: str) -> int:
        return int(self._delta.transaction_version(name) or 0)

    def _stamped(self, rows: pa.Table, version: int) -> pa.Table:
        return rows.append_column(self.schema.field(VERSION), pa.repeat(pa.scalar(version, pa.int64()), rows.num_rows))

    def _refresh(self) -> None:
        """Takes the newest snapshot; the files that it no longer has can go once nobody reads them."""
        self._delta.update_incremental()
        actions = pa.table(self._delta.get_add_actions(flatten=True))
        current = self._committed_marker(_VERSION_MARKER)
        # A file without statistics counts as old and new, so that it is never passed over and always filtered.
        oldest, newest = _bounds(actions, "min", 0), _bounds(actions, "max", current)
        paths = [str(self.path / path) for path in actions["path"].to_pylist()]
        now, known = time.monotonic(), set(paths)
        self._retired += [(now, file.path) for file in self._snapshot.files if file.path not in known]
        self._snapshot = Snapshot(current, tuple(map(File, paths, oldest, newest)))
        self._held.add(self._snapshot)

    def _unknown(self) -> list[str]:
        """Files in the directory that belong to no commit: left by one that failed, or by a process that died."""
        known = {file.path for file in self._snapshot.files} | {path for _, path in self._retired}
        found = (str(entry) for entry in self.path.iterdir() if entry.name[0] not in "._")
        return [path for path in found if path not in known]

    def _clear_up(self) -> None:
        """Frees the room that a failed commit took; not while a compaction writes files of its own."""
        if self._compacting:
            return
        for path in self._unknown():
            Path(path).unlink(missing_ok=True)


def _bounds(actions: pa.Table, end: str, unknown: int) -> list[int]:
    """The least or the greatest version in each file, as its statistics say."""
    name = f"{end}.{VERSION}"
    if name not in actions.column_names:
        return [unknown] * actions.num_rows
    return [unknown if version is None else version for version in actions[name].to_pylist()]


def _marked(version: int, markers: Mapping[str, int]) -> CommitProperties:
    transactions = [Transaction(name, value) for name, value in {**markers, _VERSION_MARKER: version}.items()]
    return CommitProperties(app_transactions=transactions)
