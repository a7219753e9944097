"""A channel's subscriptions at one moment: a large file that seldom changes, and the little that changed since."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tocsin.data.ids import NONE, IdArray, ascending, together, without
from tocsin.data.subscriptions.base import Base
from tocsin.data.subscriptions.rows import BE


@dataclass(frozen=True)
class Segments:
    """The subscriptions are the rows of ``base`` except ``removed``, and the rows of ``added``.

    All have the columns ``__be`` and ``__p0``, ``__p1``, … in the order of the channel's parameters. The base file
    stays on disk for as long as this object is kept: keep it while the file is read.

    Attributes:
        base: the path of a Parquet file, as Spark reads it, another one whenever its content is another; None when
            there is none.
        base_rows: how many rows it has.
        added: rows that are not in the base.
        removed: ids of rows that are in the base but no longer exist, ascending.
        rows: how many subscriptions that makes.
        generation: grows with every change of this channel.
    """

    base: str | None
    base_rows: int
    added: pa.Table
    removed: pa.Array
    rows: int
    generation: int
    held: Base | None = field(default=None, repr=False, compare=False)

    @property
    def changes(self) -> int:
        """How many rows an execution reads, or passes over, beside the base."""
        return int(self.added.num_rows + len(self.removed))

    def ids(self) -> IdArray:
        """All subscriptions, ascending; reads one column of the base."""
        base = self.held.ids() if self.held else NONE
        return together(without(base, self.removed.to_numpy()), added_ids(self.added))


def added_ids(added: pa.Table) -> IdArray:
    """The ids of some rows, ascending."""
    return ascending(added.column(BE).to_numpy().astype(np.int64, copy=False))
