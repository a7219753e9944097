"""Recorded movement instead of the seeded one: positions at every second, from a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tocsin.apps.emergency.people import ROAMER
from tocsin.apps.emergency.roads import Floats
from tocsin.errors import InvalidError

COLUMNS = ("t", "node", "x", "y")


class Traces:
    """The movement of a trace file, from its first second to its last.

    The file has the columns ``t`` (whole seconds), ``node`` (an id), ``x`` and ``y`` (metres), one row for each node
    and second, without gaps. Nodes whose id begins with ``e`` are publishers, all others people.
    """

    def __init__(self, path: Path | str) -> None:
        table = _table(path)
        ids = [str(node) for node in pc.unique(table["node"]).to_pylist()]
        self.publishers = [node for node in ids if node.startswith(ROAMER.letter)]
        self.people = [node for node in ids if not node.startswith(ROAMER.letter)]
        self._positions = _grid(table, self.people + self.publishers, str(path))

    def positions(self, which: Sequence[int] | None = None) -> Iterator[Floats]:
        """Each call starts again from the first second; the end of the file is the end."""
        yield from self._positions if which is None else self._positions[:, list(which)]


def _table(path: Path | str) -> pa.Table:
    try:
        table = pq.read_table(path)
    except (OSError, ValueError) as error:
        raise InvalidError(f"{path}: cannot be read as traces in Parquet: {error}") from error
    unfit = [name for name in COLUMNS if name not in table.column_names or table[name].null_count]
    if unfit or table.num_rows == 0:
        what = f"lack all or some of {', '.join(unfit)}" if unfit else "are empty"
        raise InvalidError(f"{path}: the traces {what}; they need t, node, x and y for each node in each second.")
    return table


def _grid(table: pa.Table, ids: list[str], path: str) -> Floats:
    """The positions by second, node and (x, y), refused when any is missing or given twice."""
    nodes = pc.index_in(table["node"].cast(pa.string()), value_set=pa.array(ids)).to_numpy()
    seconds = table["t"].to_numpy().astype(np.int64)
    seconds -= seconds.min()
    shape = (int(seconds.max()) + 1, len(ids))
    cells = np.ravel_multi_index((seconds, nodes), shape)
    if len(cells) != shape[0] * shape[1] or len(np.unique(cells)) != len(cells):
        raise InvalidError(
            f"{path}: the traces have {len(cells)} positions for {shape[1]} nodes in {shape[0]} seconds; "
            "each node needs exactly one position in each second."
        )
    grid = np.empty((len(cells), 2))
    grid[cells] = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=-1)
    return grid.reshape(*shape, 2)
