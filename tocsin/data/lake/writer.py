"""Rows into the Parquet files of a table, and rows of files that are written anew."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import dataset

from tocsin.data.lake.entries import VERSION, File

COMPRESSION: Final = "snappy"
# A file at least this long is followed by another; files shorter than this are compacted.
FILE_BYTES: Final = 100 * 1024 * 1024
# So much is gathered in memory before it is written: Spark reads a few large groups faster than many small ones.
_GROUP_BYTES: Final = 32 * 1024 * 1024


def new_file(directory: Path) -> Path:
    """A name for a file that nobody ever used."""
    return directory / f"part-{uuid.uuid4()}.parquet"


def written_file(path: Path, rows: int, oldest: int, newest: int) -> File:
    """What is to be known of a file that was written."""
    return File(str(path), oldest, newest, path.stat().st_size, rows)


class RowWriter:
    """Writes rows, stamped with their versions, into as many files as they need; removed if the block raises."""

    def __init__(self, directory: Path, schema: pa.Schema) -> None:
        self._directory, self._schema = directory, schema
        self._waiting: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None
        self._path = directory
        self._rows, self._oldest, self._newest = 0, 0, 0
        self.files: list[File] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
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
        if self._writer is None:
            self._path = new_file(self._directory)
            self._writer = pq.ParquetWriter(self._path, self._schema, compression=COMPRESSION)
            self._rows, self._oldest, self._newest = 0, oldest, newest
        self._writer.write_table(rows)
        self._rows += rows.num_rows
        self._oldest, self._newest = min(self._oldest, oldest), max(self._newest, newest)
        if self._path.stat().st_size >= FILE_BYTES:
            self._end_file()

    def _end_file(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        self.files.append(written_file(self._path, self._rows, self._oldest, self._newest))

    def _discard(self) -> None:
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()
            self._writer = None
            self._path.unlink(missing_ok=True)
        for file in self.files:
            Path(file.path).unlink(missing_ok=True)


def parts(files: Iterable[File], schema: pa.Schema, where: pc.Expression | None = None) -> Iterator[pa.Table]:
    """The rows of some files, a piece at a time."""
    for batch in _source(files, schema).to_batches(filter=where):
        yield pa.Table.from_batches([batch], schema)


def touched(file: File, schema: pa.Schema, where: pc.Expression) -> int:
    """How many rows of a file match."""
    return int(_source([file], schema).count_rows(filter=where))


def _source(files: Iterable[File], schema: pa.Schema) -> dataset.Dataset:
    return dataset.dataset([file.path for file in files], schema=schema, format="parquet")
