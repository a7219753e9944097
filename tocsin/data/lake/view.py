"""A table as a process sees it that does not write it: followed by its log, entry by entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tocsin.data.lake.directory import as_folder
from tocsin.data.lake.entries import LOG, VERSION, VERSION_MARKER, File, entry_name, read_news
from tocsin.data.lake.folder import Folder, FoundFile
from tocsin.data.lake.snapshot import Snapshot, committed_files
from tocsin.data.lake.writer import source
from tocsin.errors import UnavailableError


class TableView:
    """Reads, and never writes. To be used by one thread at a time.

    The newest entry of a log may be there before the disk has kept it, and is taken back if it cannot; that it counts
    is sure once another follows. ``settled`` is the newest version of which that is known, and ``history`` a number
    that is another when something may have been taken back: what was learnt after ``settled`` does not hold then.

    What can go wrong: the table cannot be read, or files of it are gone, as they were compacted and then removed while
    they were being read (UnavailableError; it may be tried again).

    Args:
        place: the table's folder; a path is that of a directory.
        names: of the markers to be known.
    """

    def __init__(self, place: Folder | Path, schema: pa.Schema, names: Iterable[str]) -> None:
        self._folder, self.schema = as_folder(place), schema.append(pa.field(VERSION, pa.int64()))
        self.version = self.settled = self.history = 0
        self._names = [*names, VERSION_MARKER]
        self._log = self._folder.below(LOG)
        self._number = -1
        # By which an entry that was taken back is told from one in its place.
        self._newest: FoundFile | None = None
        self._markers: dict[str, int] = {}
        self._files: dict[str, File] = {}

    def marker(self, name: str) -> int:
        """How far the commits got with ``name``."""
        return self._markers.get(name, 0)

    def refresh(self) -> None:
        """Sees what was committed meanwhile."""
        try:
            if self._newest is None or self._newest != self._log.find(entry_name(self._number)):
                # Taken back, or so old that a checkpoint has its place.
                self._load()
            while (found := self._log.find(entry_name(self._number + 1))) is not None:
                self._follow(found)
        except (OSError, ValueError, KeyError, DeltaError) as error:
            self._newest = None
            raise UnavailableError(
                f"the table at {self._folder.url} cannot be read ({error}): see that this machine has the same "
                "directory, or may read the bucket"
            ) from error

    def read(self, where: pc.Expression, columns: list[str], since: int) -> pa.Table:
        """Rows of it; files with nothing after version ``since`` are passed over."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(self.batches(where, columns, since), schema)

    def batches(self, where: pc.Expression, columns: list[str], since: int) -> Iterator[pa.RecordBatch]:
        """As :meth:`read`, a piece at a time."""
        files = Snapshot(self.version, tuple(self._files.values())).after(since)
        try:
            yield from source(self._folder, files, self.schema).to_batches(filter=where, columns=columns)
        except OSError as error:
            raise UnavailableError(
                f"the table at {self._folder.url} has changed while it was read ({error})"
            ) from error

    def _load(self) -> None:
        delta = DeltaTable(**self._folder.delta)
        self._number, self._newest = delta.version(), self._log.find(entry_name(delta.version()))
        self._markers = {name: delta.transaction_version(name) or 0 for name in self._names}
        self.version = self._markers[VERSION_MARKER]
        files = committed_files(self._folder, delta, self.version)
        self._files = {file.name: file for file in files}
        self.settled = self.version
        if self._newest is not None and VERSION_MARKER in read_news(self._log, entry_name(self._number)).markers:
            self.settled -= 1
        self.history += 1

    def _follow(self, found: FoundFile) -> None:
        news = read_news(self._log, entry_name(self._number + 1))
        self._number, self._newest = self._number + 1, found
        for name in news.removed:
            self._files.pop(name, None)
        self._files |= {file.path: file._replace(path=self._folder.path(file.path)) for file in news.added}
        self._markers |= news.markers
        self.settled, self.version = self.version, self._markers.get(VERSION_MARKER, 0)
