"""Rows of a batch into files of a node, wherever they are computed: in this process, or in Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tocsin.data.feeds.identity import Hashes, halves, hash_ids, join_halves
from tocsin.data.feeds.parsing import SLICE, STORED, dead_letters, flatten, is_whole
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.unclaimed import new_name
from tocsin.data.lake.writer import COMPRESSION
from tocsin.data.nodes.files import FileKind, NodeFile
from tocsin.data.nodes.sharing import SharedFeed
from tocsin.schema.arrow import record_schema

REPORT: Final = "report binary"
Unseen = Callable[[Hashes], npt.NDArray[np.bool_]]
Arriving = Callable[[pa.Table], None]


class WrittenRows(msgspec.Struct):
    """What became of some rows of the log.

    Args:
        files: what was written, at most one of each kind.
        counts: how many rows of each slice there were.
        digests: the hashes of the ids in the file of records, one for each of its rows, if they have ids.
    """

    files: list[NodeFile]
    counts: dict[int, int]
    digests: bytes = b""

    @property
    def hashes(self) -> Hashes:
        """The ids as they are looked up."""
        return halves(self.digests)

    @property
    def records(self) -> NodeFile | None:
        """The file of records."""
        return next((file for file in self.files if file.kind is FileKind.RECORDS), None)


class RowSorter:
    """Writes the rows that fit into one file, those that do not into another, and none whose id was seen before."""

    def __init__(self, shared: SharedFeed, lake: Folder) -> None:
        self._shared, self._lake = shared, lake
        self._dataset, self._schema = shared.dataset, record_schema(shared.dataset.columns)

    def write(self, rows: pa.Table, unseen: Unseen, arriving: Arriving = lambda _: None) -> WrittenRows:
        """Writes; durable when this returns. The rows are as :func:`tocsin.data.feeds.parsing.expressions` gives them.

        Before it writes, ``arriving`` is told the records that are new.
        """
        flat = flatten(rows, self._dataset)
        whole = is_whole(flat)
        # Where a function has left nothing of a slice, a row says only how far it has come.
        there = pc.or_(pc.invert(whole), flat[STORED])
        flat, whole = flat.filter(there), whole.filter(there)
        written = WrittenRows([], _counts(flat))
        good = flat.filter(whole).select(self._schema.names).cast(self._schema)
        if self._dataset.primary_key is not None:
            hashes = hash_ids(good[self._dataset.primary_key].to_pylist())
            new = unseen(hashes)
            good, written.digests = good.filter(pa.array(new)), join_halves(hashes[:, new])
        arriving(good)
        self._add(written, FileKind.RECORDS, self._shared.table, good)
        letters = dead_letters(flat.filter(pc.invert(whole)), self._dataset)
        self._add(written, FileKind.DEAD_LETTERS, self._shared.dead_letters, letters)
        return written

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same of one partition in an executor, where only those ids are known that are in it."""
        found = [batch for batch in batches if batch.num_rows]
        if found:
            yield _report(self.write(pa.Table.from_batches(found), first_of))

    def without(self, file: NodeFile, kept: npt.NDArray[np.bool_]) -> NodeFile | None:
        """A file of records written anew with only some of its rows; None if there are none. The old one stays."""
        source = pa.BufferReader(self._lake.read(file.path))
        rows = pq.read_table(source, schema=self._schema).filter(pa.array(kept))
        written = WrittenRows([], {})
        self._add(written, FileKind.RECORDS, self._shared.table, rows)
        return written.records

    def _add(self, written: WrittenRows, kind: FileKind, folder: str, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        into, name = self._lake.below(folder), new_name()
        try:
            with into.open_output(name) as sink:
                pq.write_table(rows, sink, compression=COMPRESSION)
                size = sink.tell()
            into.keep(name)
        except BaseException:
            with suppress(OSError):
                into.delete(name)
            raise
        written.files.append(NodeFile(kind, f"{folder}/{name}", size, rows.num_rows))


class RowDropper:
    """Writes files anew without some of their rows; runs in the executors."""

    def __init__(self, sorter: RowSorter) -> None:
        self._sorter = sorter

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text, kept in zip(*(batch.column(n).to_pylist() for n in (0, 1)), strict=True):
                file = msgspec.json.decode(text, type=NodeFile)
                left = self._sorter.without(file, np.frombuffer(kept, bool))
                yield _report(WrittenRows([left] if left else [], {}))


def first_of(hashes: Hashes) -> npt.NDArray[np.bool_]:
    """For each id whether it is the first of its kind."""
    _, first = np.unique(np.ascontiguousarray(hashes.T).view("V16"), return_index=True)
    new = np.zeros(hashes.shape[1], dtype=bool)
    new[first] = True
    return new


def read_report(report: bytes) -> WrittenRows:
    """What an executor says that it has written."""
    return msgspec.msgpack.decode(report, type=WrittenRows)


def _report(written: WrittenRows) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"report": [msgspec.msgpack.encode(written)]})


def _counts(rows: pa.Table) -> dict[int, int]:
    found = pc.value_counts(rows[SLICE]).to_pylist()
    return {value["values"]: value["counts"] for value in found}
