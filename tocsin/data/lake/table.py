"""One Delta table: appended to, merged into or overwritten, each commit with markers that say how far it got.

A marker is a Delta transaction identifier, atomic with the data of its commit; it is the only record of progress there
is, so a restart that reads it neither loses nor repeats anything. Every row carries in ``_v`` the number of the commit
that brought it, our own count of data commits. What is new since a number is then a filter, and stays right when
files are compacted or vacuumed. Files that others wrote without knowing that number get it as a whole, by the entry of
the log that names them.

A commit counts, and can be seen, once it is durable: first the files, then its entry in the log, which says what the
commit does and is there as a whole or not at all. How a folder does that is its own affair.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.data.disk import Disk
from tocsin.data.lake.checkpoints import entries_since_checkpoint, write_checkpoint
from tocsin.data.lake.commits import CommitLog
from tocsin.data.lake.damage import damage_named
from tocsin.data.lake.directory import DirectoryFolder, as_folder
from tocsin.data.lake.entries import FENCE, LOG, VERSION, VERSION_MARKER, File, TableChange, find_entries, read_entry
from tocsin.data.lake.folder import Folder, OutcomeUnknownError
from tocsin.data.lake.opening import QUARANTINE, check_schema, set_aside
from tocsin.data.lake.recent import Recent
from tocsin.data.lake.refusals import storage_errors
from tocsin.data.lake.retired import RetiredFiles
from tocsin.data.lake.snapshot import Snapshot, committed_files
from tocsin.data.lake.unclaimed import OutdatedError, StoreClock, is_too_old
from tocsin.data.lake.writer import FILE_BYTES, RowWriter, count_matching, parts, source
from tocsin.errors import StorageError

__all__ = ["VERSION", "File", "Snapshot", "Table"]


class Table:
    """A Delta table with one writer, this process; its methods may be called from any thread.

    What can go wrong: the storage refuses (StorageError; nothing was committed, and the same call may be made again);
    another process has taken over, by a later term (SupersededError; nothing was committed, and nothing will be);
    the process dies or the machine loses power (the next one finds the last whole commit, which is at least the last
    that counted, and removes what was left half done); the end of the log cannot be read (it is set aside, and
    ``damage`` says so).

    Args:
        place: the table's folder, made if missing; a path is that of a directory.
        schema: its columns, without ``_v``.
        recent_bytes: how much of what was appended last stays in memory.
        disk: what keeps a directory.
    """

    def __init__(
        self, place: Folder | Path, schema: pa.Schema, recent_bytes: int = 0, disk: Disk | None = None
    ) -> None:
        self.folder = as_folder(place, disk)
        self.schema = schema.append(pa.field(VERSION, pa.int64()))
        self._lock = threading.RLock()
        # Taken before the lock by whatever removes files, so that rows can be appended while files are compacted.
        self._rewriting = threading.Lock()
        self._retired = RetiredFiles(self.folder)
        self._recent = Recent(recent_bytes)
        self._clock = StoreClock(self.folder)
        with storage_errors(self.folder):
            self._log = CommitLog(self.folder)
            delta = self._log.open(self.schema)
            check_schema(self.folder.url, pa.schema(delta.schema().to_arrow()), self.schema)
            self._damaged = bool(set_aside(self.folder))
            version = self._log.markers.get(VERSION_MARKER, 0)
            self._snapshot = Snapshot(version, tuple(committed_files(self.folder, delta, version)))
            self._retired.hold(self._snapshot)
            self._retired.add_strays(self._snapshot)

    @property
    def path(self) -> Path:
        """Its directory; not of a table that is in an object store."""
        if not isinstance(self.folder, DirectoryFolder):
            raise StorageError(f"the table at {self.folder.url} has no directory on this machine")
        return self.folder.directory

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
        files = set_aside(self.folder) if self._damaged else []
        if not files:
            return ""
        name, place = "/".join(self.folder.url.split("/")[-2:]), self.folder.below(QUARANTINE).url
        return (
            f"the end of the table {name} could not be read; it goes on from its last whole commit, and the "
            f"{len(files)} file(s) after that are in {place}: move them away when you have seen them"
        )

    @property
    def changed_at(self) -> float:
        """When it was last committed to, in seconds since 1970, as far back as its log goes."""
        log = self.folder.below(LOG)
        found = log.files()
        newest_first = [name for _, name in sorted(find_entries(found).items(), reverse=True)]
        told = next((name for name in newest_first if not _is_fence(log, name)), (newest_first or [""])[-1])
        return found[told].changed_at if told else 0.0

    def marker(self, name: str) -> int:
        """How far the commits got with ``name``; 0 if none ever said. Waits for a commit at hand to be complete."""
        with self._lock:
            return self._log.markers.get(name, 0)

    def recent(self, since: int, until: int) -> pa.Table | None:
        """What came after version ``since`` up to ``until``, without ``_v``, if it is little and still in memory."""
        return self._recent.between(since, until)

    def append(self, rows: pa.Table, markers: Mapping[str, int]) -> Snapshot:
        """Adds rows."""
        with self._lock, self._writing() as writer:
            writer.write(self._stamp_rows(rows, self.version + 1))
            writer.end()
            self._commit(self._next("WRITE", markers, added=writer.files))
            self._recent.add(self.version, rows)
        return self._snapshot

    def merge(self, rows: pa.Table, key: str, markers: Mapping[str, int]) -> Snapshot:
        """Adds rows, each in the place of the one with the same key; the keys in ``rows`` must differ."""
        with self._rewriting, self._lock, self._writing() as writer:
            replaced = pc.field(key).isin(rows[key].combine_chunks().drop_null())
            removed = self._rewrite(writer, replaced)
            writer.write(self._stamp_rows(rows, self.version + 1))
            writer.end()
            self._commit(self._next("MERGE", markers, writer.files, removed))
        return self._snapshot

    def overwrite(self, rows: pa.Table, markers: Mapping[str, int]) -> Snapshot:
        """Replaces all rows."""
        with self._rewriting, self._lock, self._writing() as writer:
            writer.write(self._stamp_rows(rows, self.version + 1))
            writer.end()
            self._commit(self._next("WRITE", markers, writer.files, self._snapshot.files))
        return self._snapshot

    def mark(self, markers: Mapping[str, int]) -> Snapshot:
        """Moves markers on without any data."""
        with self._lock, storage_errors(self.folder):
            self._commit(self._next("WRITE", markers))
            self._recent.add(self.version, self.schema.empty_table().drop_columns(VERSION))
        return self._snapshot

    def adopt(self, files: list[File], version: int, markers: Mapping[str, int]) -> Snapshot:
        """Commits files that others wrote and synced in the table's directory, stamped with ``version``, the next."""
        with self._lock, storage_errors(self.folder):
            try:
                self._check_next(version)
                self._commit(self._next("WRITE", markers, files))
            except OutcomeUnknownError:
                raise
            except BaseException:
                self._discard(files)
                raise
        return self._snapshot

    def adopt_unstamped(
        self, files: Iterable[File], markers: Mapping[str, int], writers: Mapping[str, str] = MappingProxyType({})
    ) -> Snapshot:
        """Commits files that others wrote and synced in the table's folder, without versions in their rows.

        They are of several writers and of any number, also none. They stay where they are when this fails: nobody here
        can know whether they are offered again. Those that are offered too late are refused, as they may be removed.

        Args:
            writers: whose files they are, by their names; kept in the log.
        """
        with self._lock, storage_errors(self.folder):
            version = self.version + 1
            taken = [file._replace(oldest=version, newest=version, stamped=False) for file in files]
            try:
                self.check_offered(taken)
            except OutdatedError as error:
                raise StorageError(str(error)) from error
            self._commit(replace(self._next("WRITE", markers, taken), writers=writers))
            self._retired.take_back({file.path for file in taken})
            # Of this commit, also where another follows at once.
            return self._snapshot

    def check_offered(self, files: Iterable[File]) -> None:
        """Raises OutdatedError, and why, if :meth:`adopt_unstamped` would refuse one of these files by now.

        Raises OSError if the storage does not answer.
        """
        known = {file.path for file in self._snapshot.files}
        for file in files:
            if file.path in known:
                raise OutdatedError(f"{self.folder.name}: {file.name} is part of it already")
            known.add(file.path)
            found = self.folder.find(file.name)
            if self._retired.is_doomed(file.path) or found is None or found.size != file.size:
                raise OutdatedError(f"{self.folder.name}: {file.name} is not there as it was written")
            if is_too_old(found, self._clock):
                raise OutdatedError(f"{self.folder.name}: {file.name} was written too long ago, and may be removed")

    def delete(self, predicate: pc.Expression) -> int:
        """Removes the rows that match; how many."""
        with self._rewriting, self._lock, self._writing() as writer:
            self._recent.forget()
            removed = self._rewrite(writer, predicate)
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
            with self._writing() as writer, damage_named(self.folder, small):
                for part in parts(self.folder, small, self.schema):
                    writer.write(part)
                writer.end()
                with self._lock:
                    self._commit(TableChange("OPTIMIZE", tuple(writer.files), tuple(small), news=False))

    def checkpoint(self, commits: int) -> bool:
        """Shortens the log if it has so many commits to read; whether it had. Rows may be committed meanwhile."""
        with self._rewriting, storage_errors(self.folder):
            if entries_since_checkpoint(self.folder) < commits:
                return False
            # One of an earlier state, put in place late, would be in the way of whoever reads the table.
            self._check_fence()
            with self._lock:
                if not self._log.is_last():
                    return False
            write_checkpoint(self.folder)
            return True

    def vacuum(self, grace: float) -> int:
        """Deletes the files that no held snapshot and none of the last ``grace`` seconds has; how many."""
        # What one that was superseded does not know may be what its successor has committed.
        self._check_fence()
        with self._lock, storage_errors(self.folder):
            if not self._log.is_last():
                return 0
            # From here on nobody may commit one of them.
            doomed = self._retired.doom(grace)
        with storage_errors(self.folder):
            for path in doomed:
                self.folder.delete(path.rpartition("/")[2])
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
        return pa.Table.from_batches(self.batches(where, columns, since, of), self._select_schema(columns))

    def batches(
        self,
        where: pc.Expression | None = None,
        columns: list[str] | None = None,
        since: int = -1,
        of: Snapshot | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """As :meth:`read`, a piece at a time."""
        snapshot = of or self._snapshot
        files = snapshot.after(since)
        rows = source(self.folder, files, self.schema)
        with storage_errors(self.folder, "read"), damage_named(self.folder, files):
            yield from rows.to_batches(filter=where, columns=columns)

    def _select_schema(self, columns: list[str] | None) -> pa.Schema:
        return self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])

    @contextmanager
    def _writing(self) -> Iterator[RowWriter]:
        with storage_errors(self.folder), RowWriter(self.folder, self.schema) as writer:
            yield writer

    def _rewrite(self, writer: RowWriter, doomed: pc.Expression) -> dict[File, int]:
        """Writes the rows that stay of all files that have others; these files, with how many rows go."""
        files = self._snapshot.files
        with damage_named(self.folder, files):
            counts = {file: count_matching(self.folder, file, self.schema, doomed) for file in files}
            removed = {file: count for file, count in counts.items() if count}
            # What is neither true nor false is not meant.
            for part in parts(self.folder, removed, self.schema, ~doomed | doomed.is_null()) if removed else ():
                writer.write(part)
        return removed

    def _check_next(self, version: int) -> None:
        if version != self.version + 1:
            raise StorageError(f"{self.folder.name}: written for version {version}, but {self.version + 1} is next")

    def _check_fence(self) -> None:
        if self.folder.fence is not None:
            self.folder.fence.check()

    def _next(
        self, operation: str, markers: Mapping[str, int], added: Iterable[File] = (), removed: Iterable[File] = ()
    ) -> TableChange:
        """A change that makes the next version."""
        return TableChange(operation, tuple(added), tuple(removed), {**markers, VERSION_MARKER: self.version + 1})

    def _commit(self, change: TableChange) -> None:
        """Puts a change into the log. It is durable, and only then seen, when this returns; to be called locked."""
        self._log.put(change)
        gone = set(change.removed)
        files_now = [file for file in self._snapshot.files if file not in gone]
        self._show(change.markers.get(VERSION_MARKER, self.version), [*files_now, *change.added])

    def _show(self, version: int, files: list[File]) -> None:
        """Lets everybody see a new state; the files that it no longer has can go once nobody reads them."""
        known = {file.path for file in files}
        self._retired.add([file.path for file in self._snapshot.files if file.path not in known])
        self._snapshot = Snapshot(version, tuple(files))
        self._retired.hold(self._snapshot)

    def _stamp_rows(self, rows: pa.Table, version: int) -> pa.Table:
        versions = pa.repeat(pa.scalar(version, pa.int64()), rows.num_rows)
        return rows.append_column(self.schema.field(VERSION), versions).select(self.schema.names).cast(self.schema)

    def _discard(self, files: Iterable[File]) -> None:
        """Removes files that no commit has; what cannot be removed now goes after the next start."""
        with suppress(OSError):
            for file in files:
                self.folder.delete(file.name)


def _is_fence(log: Folder, entry: str) -> bool:
    said = read_entry(log, entry)
    return said is not None and said.operation == FENCE


def _age(file: File) -> tuple[int, int]:
    return file.oldest, file.newest
