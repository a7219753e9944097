"""What a channel finds at a node, written for the head to read: here, or where Spark computes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tocsin.data.lake.folder import Folder
from tocsin.data.lake.unclaimed import new_name
from tocsin.data.lake.writer import COMPRESSION
from tocsin.data.nodes.channels import RESULT_BYTES
from tocsin.data.results import FOUND, found_rows
from tocsin.errors import TooLargeError

MOST_FILES: Final = 256
"""Of results in one batch, of all channels: the head takes no message that is too long."""
_WRITTEN = "name string, size bigint, rows bigint"


class ResultFile(NamedTuple):
    """A file of results, in the folder of the channel's."""

    name: str
    size: int
    rows: int


class ResultWriter:
    """Writes rows of ``FOUND``. They are not synced: a file that is lost is as if the channel had not been matched.

    Raises TooLargeError for more than a node may find in a batch, and leaves nothing behind then.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def compute(self, found: DataFrame, by_executors: bool) -> list[ResultFile]:
        """Runs a channel's query, and writes what it gives."""
        rows = found_rows(found)
        if not by_executors:
            return self.write(rows.toArrow())
        files = [ResultFile(*row) for row in rows.mapInArrow(self, _WRITTEN).collect()]
        if sum(file.size for file in files) > RESULT_BYTES:
            self.discard(files)
            raise _too_large()
        return files

    def write(self, rows: pa.Table) -> list[ResultFile]:
        """One file, or none if there are no rows."""
        if not rows.num_rows:
            return []
        if rows.nbytes > RESULT_BYTES:
            raise _too_large()
        name = new_name()
        try:
            with self._folder.open_output(name) as sink:
                pq.write_table(rows.select(FOUND.names).cast(FOUND), sink, compression=COMPRESSION)
                size = sink.tell()
        except BaseException:
            self.discard([ResultFile(name, 0, 0)])
            raise
        return [ResultFile(name, size, rows.num_rows)]

    def discard(self, files: Iterable[ResultFile]) -> None:
        """Removes files that the head will not be told of."""
        for file in files:
            with suppress(OSError):
                self._folder.delete(file.name)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same of one partition in an executor."""
        kept, size = list[pa.RecordBatch](), 0
        for batch in batches:
            kept.append(batch)
            size += batch.nbytes
            if size > RESULT_BYTES:
                raise _too_large()
        for file in self.write(pa.Table.from_batches(kept)) if kept else []:
            yield pa.RecordBatch.from_pydict({"name": [file.name], "size": [file.size], "rows": [file.rows]})


def _too_large() -> TooLargeError:
    return TooLargeError(f"more than {RESULT_BYTES:,} bytes were found in a batch, which is left to the head")
