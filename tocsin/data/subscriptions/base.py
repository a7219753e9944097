"""Base files: most of a channel's subscriptions as one Parquet file that Spark reads.

They are disposable. The store is the truth, and a base that is missing, damaged or of another store is made anew. As a
subscription's row never changes and its id is never used again, an old base is as good as a new one but for the rows
that have come and gone since.
"""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.data.ids import IdArray, ascending
from tocsin.data.lake.folder import Folder
from tocsin.data.subscriptions.rows import BE
from tocsin.errors import StorageError

_ROW_GROUP: Final = 128 * 1024
_STORE: Final = b"tocsin.store"


class Base:
    """One base file. ``last`` is its highest id: what is newer is not in it."""

    def __init__(self, folder: Folder, name: str, rows: int, last: int) -> None:
        self._folder, self._name, self.rows, self.last = folder, name, rows, last

    @classmethod
    def write(cls, folder: Folder, name: str, rows: pa.Table, store: str) -> Self:
        """Write the rows, of which there is at least one, to a file that is there as a whole or not at all."""
        content = pa.BufferOutputStream()
        pq.write_table(
            rows.replace_schema_metadata({_STORE: store.encode()}),
            content,
            row_group_size=_ROW_GROUP,
            write_page_checksum=True,
        )
        try:
            folder.write(name, content.getvalue().to_pybytes())
        except OSError as error:
            raise StorageError(
                f"{folder.path(name)} cannot be written ({error}): make room or writable, and it is tried again"
            ) from error
        return cls(folder, name, rows.num_rows, int(_ids(rows)[-1]))

    @classmethod
    def open(cls, folder: Folder, name: str, schema: pa.Schema, store: str) -> Self | None:
        """A base written earlier, if every byte of it is sound and it is of this store and schema."""
        try:
            with pq.ParquetFile(pa.BufferReader(folder.read(name)), page_checksum_verification=True) as file:
                rows = file.read()
        except (OSError, pa.ArrowException):
            return None
        of_store = (rows.schema.metadata or {}).get(_STORE) == store.encode()
        if not of_store or not rows.schema.equals(schema) or not rows.num_rows:
            return None
        return cls(folder, name, rows.num_rows, int(_ids(rows)[-1]))

    @property
    def path(self) -> str:
        """The file, as Spark reads it."""
        return self._folder.path(self._name)

    def read(self) -> pa.Table:
        """All rows."""
        return self._read(None)

    def ids(self) -> IdArray:
        """All ids, ascending."""
        return _ids(self._read([BE]))

    def supersede(self) -> None:
        """Remove the file as soon as nobody keeps this object any more."""
        # Not at exit: a process that ends while executions run must not take their files away.
        weakref.finalize(self, _remove, self._folder, self._name).atexit = False

    def _read(self, columns: list[str] | None) -> pa.Table:
        try:
            with pq.ParquetFile(pa.BufferReader(self._folder.read(self._name))) as file:
                return file.read(columns).replace_schema_metadata(None)
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"{self.path} cannot be read ({error}): a restart makes it anew") from error


def _remove(folder: Folder, name: str) -> None:
    # What cannot be removed now is swept away at the next start.
    with suppress(OSError):
        folder.delete(name)


def _ids(rows: pa.Table) -> IdArray:
    return ascending(rows.column(BE).to_numpy().astype(np.int64, copy=False))
