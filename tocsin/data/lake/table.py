"""One Delta table: appended to, merged into or overwritten, each commit with markers that say how far it got.

A marker is a Delta transaction identifier, atomic with the data of its commit; it is the only record of progress there
is, so a restart that reads it neither loses nor repeats anything. Every row carries in ``_v`` the number of the commit
that brought it, our own count of data commits. What is new since a number is then a filter, and stays right when
files are compacted or vacuumed.

A commit counts, and can be seen, once the disk has it: first the files and the text of its entry in the log, then the
entry's name.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow import dataset

from tocsin.data.disk import Disk
from tocsin.data.lake.checkpoints import entries_since_checkpoint, read_markers, write_checkpoint
from tocsin.data.lake.entries import LOG, VERSION, VERSION_MARKER, File, TableChange, encoded, entry_name, numbered
from tocsin.data.lake.opening import open_table, set_aside
from tocsin.data.lake.recent import Recent
from tocsin.data.lake.refusals import storage_errors
from tocsin.data.lake.schema import check_schema
from tocsin.data.lake.writer import FILE_BYTES, RowWriter, parts, touched
from tocsin.errors import StorageError

__all__ = ["VERSION", "File", "Snapshot", "Table"]

_DRAFT = "_draft"


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
    the process dies or the machine loses power (the next one finds the last whole commit, which is at least the last
    that counted, and removes what was left half done); the end of the log cannot be read (it is set aside, and
    ``damage`` says so).

    Args:
        path: the table's directory, made if missing.
        schema: its columns, without ``_v``.
        recent_bytes: how much of what was appended last stays in memory.
        disk: what keeps it.
    """

    def __init__(self, path: Path, schema: pa.Schema, recent_bytes: int = 0, disk: Disk | None = None) -> None:
        self.path = path
        self.schema = schema.append(pa.field(VERSION, pa.int64()))
        self._disk = disk or Disk()
        self._lock = threading.RLock()
        # Taken before the lock by whatever removes files, so that rows can be appended while files are compacted.
        self._rewriting = threading.Lock()
        self._retired: list[tuple[float, str]] = []
        self._held: weakref.WeakSet[Snapshot] = weakref.WeakSet()
        self._recent = Recent(recent_bytes)
        with storage_errors(path):
            delta = open_table(path, self.schema, self._disk)
            check_schema(path, pa.schema(delta.schema().to_arrow()), self.schema)
            self._damaged = bool(set_aside(path))
            self._number = delta.version()
            self._markers = read_markers(path / LOG)
            version = self._markers.get(VERSION_MARKER, 0)
            self._snapshot = Snapshot(version, tuple(_files(path, delta, version)))
            self._held.add(self._snapshot)
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

    @property
    def damage(self) -> str:
        """What was found unreadable and set aside, until somebody has taken it away."""
        files = set_aside(self.path) if self._damaged else []
        if not files:
            return ""
        return (
            f"the end of the table {self.path.parent.name}/{self.path.name} could not be read; it goes on from its "
            f"last whole commit, and the {len(files)} file(s) after that are in {files[0].parent}: move them away when "
            "you have seen them"
        )

    @property
    def changed_at(self) -> float:
        """When it was last committed to, in seconds since 1970, as its log has it."""
        log = self.path / LOG
        return max(numbered(log).items(), default=(0, log))[1].stat().st_mtime

    def marker(self, name: str) -> int:
        """How far the commits got with ``name``; 0 if none ever said. Waits for a commit at hand to be complete."""
        with self._lock:
            return self._markers.get(name, 0)

    def recent(self, since: int, until: int) -> pa.Table | None:
        """What came after version ``since`` up to ``until``, without ``_v``, if it is little and still in memory."""
        return self._recent.between(since, until)

    def append(self, rows: pa.Table, markers: Mapping[str, int]) -> Snapshot:
        """Adds rows."""
        with self._lock, self._writing() as writer:
            writer.write(self._stamped(rows, self.version + 1))
            writer.end()
            self._commit(self._next("WRITE", markers, added=writer.files))
            self._recent.add(self.version, rows)
        return self._snapshot

    def merge(self, rows: pa.Table, key: str, markers: Mapping[str, int]) -> Snapshot:
        """Adds rows, each in the place of the one with the same key; the keys in ``rows`` must differ."""
        with self._rewriting, self._lock, self._writing() as writer:
            replaced = pc.field(key).isin(rows[key].combine_chunks().drop_null())
            removed = self._written_anew(writer, replaced)
            writer.write(self._stamped(rows, self.version + 1))
            writer.end()
            self._commit(self._next("MERGE", markers, writer.files, removed))
        return self._snapshot

    def overwrite(self, rows: pa.Table, markers: Mapping[str, int]) -> Snapshot:
        """Replaces all rows."""
        with self._rewriting, self._lock, self._writing() as writer:
            writer.write(self._stamped(rows, self.version + 1))
            writer.end()
            self._commit(self._next("WRITE", markers, writer.files, self._snapshot.files))
        return self._snapshot

    def mark(self, markers: Mapping[str, int]) -> Snapshot:
        """Moves markers on without any data."""
        with self._lock, storage_errors(self.path):
            self._commit(self._next("WRITE", markers))
            self._recent.add(self.version, self.schema.empty_table().drop_columns(VERSION))
        return self._snapshot

    def adopt(self, files: list[File], version: int, markers: Mapping[str, int]) -> Snapshot:
        """Commits files that others wrote and synced in the table's directory, stamped with ``version``, the next."""
        with self._lock, storage_errors(self.path):
            try:
                self._check_next(version)
                self._commit(self._next("WRITE", markers, files))
            except BaseException:
                for file in files:
                    Path(file.path).unlink(missing_ok=True)
                raise
        return self._snapshot

    def delete(self, predicate: pc.Expression) -> int:
        """Removes the rows that match; how many."""
        with self._rewriting, self._lock, self._writing() as writer:
            self._recent.forget()
            removed = self._written_anew(writer, predicate)
            writer.end()
            if removed:
                self._commit(TableChange("DELETE", tuple(writer.files), tuple(removed)))
        return sum(removed.values())

    def compact(self) -> None:
        """Merges small files; rows may be appended meanwhile."""
        with self._rewriting:
            small = sorted((file for file in self._snapshot.files if file.size < FILE_BYTES), key=_age)
            if len(small) < 2:
                return
            with self._writing() as writer:
                for part in parts(small, self.schema):
                    writer.write(part)
                writer.end()
                with self._lock:
                    self._commit(TableChange("OPTIMIZE", tuple(writer.files), tuple(small), news=False))

    def checkpoint(self, commits: int) -> bool:
        """Shortens the log if it has so many commits to read; whether it had. Rows may be committed meanwhile."""
        with self._rewriting, storage_errors(self.path):
            if entries_since_checkpoint(self.path) < commits:
                return False
            write_checkpoint(self.path, self._disk)
            return True

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

    def read(
        self,
        where: pc.Expression | None = None,
        columns: list[str] | None = None,
        since: int = -1,
        of: Snapshot | None = None,
    ) -> pa.Table:
        """Rows read here, without Spark: for the small answers. Files with nothing after ``since`` are passed over.

        They are ``of`` the newest snapshot, unless another is given.
        """
        return pa.Table.from_batches(self.batches(where, columns, since, of), self._selected(columns))

    def batches(
        self,
        where: pc.Expression | None = None,
        columns: list[str] | None = None,
        since: int = -1,
        of: Snapshot | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """As :meth:`read`, a piece at a time."""
        snapshot = of or self._snapshot
        source = dataset.dataset(snapshot.paths(since), schema=self.schema, format="parquet")
        yield from source.to_batches(filter=where, columns=columns)

    def _selected(self, columns: list[str] | None) -> pa.Schema:
        return self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])

    @contextmanager
    def _writing(self) -> Iterator[RowWriter]:
        with storage_errors(self.path), RowWriter(self.path, self.schema) as writer:
            yield writer

    def _written_anew(self, writer: RowWriter, doomed: pc.Expression) -> dict[File, int]:
        """Writes the rows that stay of all files that have others; these files, with how many rows go."""
        counts = {file: touched(file, self.schema, doomed) for file in self._snapshot.files}
        removed = {file: count for file, count in counts.items() if count}
        # What is neither true nor false is not meant.
        for part in parts(removed, self.schema, ~doomed | doomed.is_null()) if removed else ():
            writer.write(part)
        return removed

    def _check_next(self, version: int) -> None:
        if version != self.version + 1:
            raise StorageError(f"{self.path.name}: written for version {version}, but {self.version + 1} is next")

    def _next(
        self, operation: str, markers: Mapping[str, int], added: Iterable[File] = (), removed: Iterable[File] = ()
    ) -> TableChange:
        """A change that makes the next version."""
        return TableChange(operation, tuple(added), tuple(removed), {**markers, VERSION_MARKER: self.version + 1})

    def _commit(self, change: TableChange) -> None:
        """Puts a change into the log. It is on disk, and only then seen, when this returns; to be called locked."""
        log, number = self.path / LOG, self._number + 1
        draft, entry = log / _DRAFT, log / entry_name(number)
        draft.write_bytes(encoded(change, self._disk.syncs))
        files = [Path(file.path) for file in change.added]
        self._disk.keep(*files, draft, *([self.path] if files else []))
        draft.replace(entry)
        try:
            self._disk.keep(log)
        except OSError:
            # It does not count, so it must not be found later either.
            with suppress(OSError):
                entry.unlink()
            raise
        self._number = number
        self._markers.update(change.markers)
        gone = set(change.removed)
        files_now = [file for file in self._snapshot.files if file not in gone]
        self._show(change.markers.get(VERSION_MARKER, self.version), [*files_now, *change.added])

    def _show(self, version: int, files: list[File]) -> None:
        """Lets everybody see a new state; the files that it no longer has can go once nobody reads them."""
        now, known = time.monotonic(), {file.path for file in files}
        self._retired += [(now, file.path) for file in self._snapshot.files if file.path not in known]
        self._snapshot = Snapshot(version, tuple(files))
        self._held.add(self._snapshot)

    def _stamped(self, rows: pa.Table, version: int) -> pa.Table:
        versions = pa.repeat(pa.scalar(version, pa.int64()), rows.num_rows)
        return rows.append_column(self.schema.field(VERSION), versions).select(self.schema.names).cast(self.schema)

    def _unknown(self) -> list[str]:
        """Files in the directory that belong to no commit: left by one that failed, or by a process that died."""
        known = {file.path for file in self._snapshot.files}
        found = (str(entry) for entry in self.path.iterdir() if entry.name[0] not in "._")
        return [path for path in found if path not in known]


def _age(file: File) -> tuple[int, int]:
    return file.oldest, file.newest


def _files(path: Path, delta: DeltaTable, version: int) -> Iterator[File]:
    actions = pa.table(delta.get_add_actions(flatten=True))
    paths = [str(path / name) for name in actions["path"].to_pylist()]
    sizes, rows = (actions[name].to_pylist() for name in ("size_bytes", "num_records"))
    # A file without statistics counts as old and new, so that it is never passed over and always filtered.
    return map(File, paths, _bounds(actions, "min", 0), _bounds(actions, "max", version), sizes, rows)


def _bounds(actions: pa.Table, end: str, unknown: int) -> list[int]:
    """The least or the greatest version in each file, as its statistics say."""
    name = f"{end}.{VERSION}"
    if name not in actions.column_names:
        return [unknown] * actions.num_rows
    return [unknown if version is None else version for version in actions[name].to_pylist()]
