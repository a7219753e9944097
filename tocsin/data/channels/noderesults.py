"""What nodes have found, as an execution takes it in the place of its query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tocsin.data.channels.arrival import OvertakenError
from tocsin.data.channels.matches import Matches, NodeMatch
from tocsin.data.channels.shared import SharedChannels
from tocsin.data.compiler.check import Compiled
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.location import RESULTS
from tocsin.data.lake.table import Table
from tocsin.data.nodes.channels import RESULT_BYTES
from tocsin.data.results import FOUND, ChannelResults
from tocsin.errors import TocsinError
from tocsin.log import get_logger

log = get_logger(__name__)

MOST_BYTES: Final = 32 << 20
"""What is taken of nodes in one execution; of more, Spark makes an ordinary one, which need not have it all here."""


class NodeResults:
    """Results that nodes have offered with batches that were stored. Its methods may be called from any thread.

    What can go wrong: they are not of everything that is new, do not hold any more, are too many, or cannot be read.
    They are thrown away then, and the channel is executed.
    """

    def __init__(self, lake: Folder, tables: Mapping[str, Table], shared: SharedChannels) -> None:
        self.shared = shared
        self._results, self._tables = lake.below(RESULTS), tables
        self._matches = Matches()

    def put(self, table: Table, version: int, batches: Sequence[Mapping[str, NodeMatch]]) -> None:
        """A version of a dataset is stored, of batches in each of which nodes have found something of some channels."""
        self._discard(self._matches.put(table, version, batches))

    def find(self, compiled: Compiled, results: ChannelResults, dataset: str, until: int) -> pa.Table | None:
        """What a channel finds in what is new up to a version, of columns ``FOUND``; None if it has to be executed."""
        name = compiled.channel.name
        taken = self._matches.take(name, self._tables[dataset], results.seen_version(dataset), until)
        try:
            if not taken.complete:
                return None
            self.shared.require(compiled, taken.matches)
            return self._merge_files(name, [file for match in taken.matches for file in match.files])
        except (OvertakenError, TocsinError, OSError, pa.ArrowException) as error:
            log.debug("what nodes have found does not count", channel=name, reason=str(error))
            return None
        finally:
            self._discard([*taken.matches, *taken.passed_over])

    def _merge_files(self, channel: str, names: Sequence[str]) -> pa.Table:
        """What is in these files, none of which is read if they are too large."""
        folder = self._results.below(channel)
        found = [folder.find(name) for name in names]
        sizes = [file.size for file in found if file is not None]
        if len(sizes) < len(names) or max(sizes, default=0) > 2 * RESULT_BYTES:
            raise OvertakenError("a file is not there, or larger than a node may write it")
        if sum(sizes) > MOST_BYTES:
            raise OvertakenError(f"{sum(sizes):,} bytes are too much")
        parts, size = list[pa.Table](), 0
        for name in names:
            parts.append(self._read(folder, name))
            size += parts[-1].nbytes
            # Files are compressed.
            if size > MOST_BYTES:
                raise OvertakenError(f"more than {MOST_BYTES:,} bytes were found, which is too much")
        return merge_results(parts)

    def _read(self, folder: Folder, name: str) -> pa.Table:
        rows = pq.read_table(pa.BufferReader(folder.read(name)))
        if not rows.schema.equals(FOUND, check_metadata=False) or any(column.null_count for column in rows.columns):
            raise OvertakenError(f"{name} has not the columns that it should have")
        return rows

    def _discard(self, matches: Iterable[NodeMatch]) -> None:
        for match in matches:
            for name in match.files:
                with suppress(OSError):
                    self._results.below(match.channel).delete(name)


def merge_results(parts: Sequence[pa.Table]) -> pa.Table:
    """Results of columns ``FOUND``, with one row for each subscription: what parts have found for it, put together."""
    rows = pa.concat_tables([FOUND.empty_table(), *parts]).combine_chunks()
    counts = pc.value_counts(rows["be"])
    twice = counts.field(0).filter(pc.greater(counts.field(1), 1))
    if not len(twice):
        return rows
    shared = pc.is_in(rows["be"], twice)
    found: dict[int, list[tuple[str, int]]] = {}
    for row in rows.filter(shared).to_pylist():
        found.setdefault(row["be"], []).append((row["payload"], row["rows"]))
    payloads = [f"[{','.join(payload[1:-1] for payload, _ in some)}]" for some in found.values()]
    columns = {
        "be": list(found),
        "payload": payloads,
        "rows": [sum(count for _, count in some) for some in found.values()],
        "bytes": [len(payload.encode()) for payload in payloads],
    }
    return pa.concat_tables([rows.filter(pc.invert(shared)), pa.table(columns, schema=FOUND)])
