"""Rows into the Parquet files of a table, and rows of files that are written anew."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import dataset

from tocsin.data.lake.entries import VERSION, File
from tocsin.data.lake.folder import Folder, OutcomeUnknownError

COMPRESSION: Final = "snappy"
# A file at least this long is followed by another; files shorter than this are compacted.
FILE_BYTES: Final = 100 * 1024 * 1024
# So much is gathered in memory before it is written: Spark reads a few large groups faster than many small ones.
_GROUP_BYTES: Final = 32 * 1024 * 1024


def new_name() -> str:
    """A name for a file that nobody ever used."""
    return f"part-{uuid.uuid4()}.parquet"


class RowWriter:
    """Writes rows, stamped with their versions, into as many files as they need.

    They are removed if the block raises, unless a commit may have them.
    """

    def __init__(self, folder: Folder, schema: pa.Schema) -> None:
        self._folder, self._schema = folder, schema
        self._waiting: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None
        self._sink: pa.NativeFile | None = None
        self._name = ""
        self._rows, self._oldest, self._newest = 0, 0, 0
        self.files: list[File] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, OutcomeUnknownError):
            self._discard()

    def write(self, rows: pa.Table) -> None:
        """Adds rows."""
        if not rows.num_rows:
            return
        self._waiting.append(rows)
        if sum(part.nbytes for part in self._waiting) >= _GROUP_BYTES:
            self._flush()

    def end(self) -> None:
        """Writes what is still waiting; ``files`` are complete then."""
        self._flush()
        self._end_file()

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = pa.concat_tables(self._waiting).combine_chunks()
        self._waiting = []
        bounds = pc.min_max(rows[VERSION])
        oldest, newest = bounds["min"].as_py(), bounds["max"].as_py()
        if self._writer is None or self._sink is None:
            self._name = new_name()
            self._sink = self._folder.open_output(self._name)
            self._writer = pq.ParquetWriter(self._sink, self._schema, compression=COMPRESSION)
            self._rows, self._oldest, self._newest = 0, oldest, newest
        self._writer.write_table(rows)
        self._rows += rows.num_rows
        self._oldest, self._newest = min(self._oldest, oldest), max(self._newest, newest)
        if self._sink.tell() >= FILE_BYTES:
            self._end_file()

    def _end_file(self) -> None:
        if self._writer is None or self._sink is None:
            return
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        self._writer = self._sink = None
        self.files.append(File(self._folder.path(self._name), self._oldest, self._newest, size, self._rows))

    def _discard(self) -> None:
        if self._sink is not None:
            with suppress(OSError):
                self._sink.close()
            self._writer = self._sink = None
        # What cannot be removed now belongs to no commit, and goes after the next start.
        with suppress(OSError):
            for name in (self._name, *(file.name for file in self.files)):
                self._folder.delete(name)


def parts(
    folder: Folder, files: Iterable[File], schema: pa.Schema, where: pc.Expression | None = None
) -> Iterator[pa.Table]:
    """The rows of some files, a piece at a time."""
    for batch in source(folder, files, schema).to_batches(filter=where):
        yield pa.Table.from_batches([batch], schema)


def count_matching(folder: Folder, file: File, schema: pa.Schema, where: pc.Expression) -> int:
    """How many rows of a file match."""
    return int(source(folder, [file], schema).count_rows(filter=where))


def source(folder: Folder, files: Iterable[File], schema: pa.Schema) -> dataset.Dataset:
    """The rows of some files, each with its version, also where the file itself does not have it."""
    known = list(files)
    filesystem, place = folder.arrow
    return dataset.FileSystemDataset.from_paths(
        [f"{place}/{file.name}" for file in known],
        schema=schema,
        format=dataset.ParquetFileFormat(),
        filesystem=filesystem,
        partitions=[_known_condition(file) for file in known],
    )


def _known_condition(file: File) -> pc.Expression:
    """What holds for all rows of a file. Arrow fills in a column that the file lacks, if this says its value."""
    return pc.scalar(True) if file.stamped else pc.field(VERSION) == file.newest
