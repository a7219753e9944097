"""One channel's subscriptions as they change: the base and, in memory, what came and went since."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.data.ids import NONE, IdArray, ascending, together, without
from tocsin.data.subscriptions.base import Base
from tocsin.data.subscriptions.rows import BE, schema
from tocsin.data.subscriptions.segments import Segments, added_ids
from tocsin.schema.definitions import Channel

_FEWEST_CHANGES: Final = 1_000


class Live:
    """The state behind a channel's :class:`Segments`. A change costs what is changed, a snapshot what changed since.

    Ids are given out in ascending order and added here in that order, so an id is in the base exactly when it is not
    above the base's last. Not safe for threads: the registry sees to that.

    Args:
        channel: whose subscriptions they are.
        generations: gives the number of each change; shared by all channels, so that one dropped and created anew
            does not use its numbers again.
        base: the file to begin with.
    """

    def __init__(self, channel: Channel, generations: Iterator[int], base: Base | None = None) -> None:
        self.channel = channel
        self.rows = base.rows if base else 0
        self.generation = next(generations)
        self._generations = generations
        self._base = base
        self._churn = 0
        self._added = schema(channel.parameters).empty_table()
        self._removed = NONE
        self._came: list[pa.Table] = []
        self._gone: list[IdArray] = []
        self._snapshot: Segments | None = None

    def add(self, rows: pa.Table) -> None:
        """New subscriptions, with ids above all earlier ones."""
        if rows.num_rows:
            self._came.append(rows)
            self._changed(rows.num_rows)

    def remove(self, ids: IdArray) -> None:
        """Subscriptions of this channel that are no more; each is removed once."""
        if len(ids):
            self._gone.append(ids)
            self._changed(-len(ids))

    def snapshot(self) -> Segments:
        """The subscriptions as they are now."""
        if self._snapshot is None:
            self._settle()
            base = self._base
            self._snapshot = Segments(
                base=base.path if base else None,
                base_rows=base.rows if base else 0,
                added=self._added,
                removed=pa.array(self._removed),
                rows=self.rows,
                generation=self.generation,
                held=base,
            )
        return self._snapshot

    def changes_exceed(self, times: int) -> bool:
        """Whether the changes are more than so many times what is worth carrying along.

        That is a tenth of the base: writing it anew then costs ten rows for each one changed, and executions read at
        most that much more than they need. A thousand rows are no work for an execution, whatever the base.
        """
        limit = times * max(_FEWEST_CHANGES, (self._base.rows if self._base else 0) // 10)
        return self._churn > limit and self.snapshot().changes > limit

    def adopt(self, base: Base | None, written: Segments) -> None:
        """Go on from a base that holds exactly what ``written`` did; what changed since then stays a change."""
        self._settle()
        below = added_ids(written.added)
        last = max(int(below[-1]) if len(below) else 0, self._last)
        self._removed = together(
            without(self._removed, written.removed.to_numpy()), without(below, added_ids(self._added))
        )
        self._added = self._added.filter(pc.greater(self._added.column(BE), last))
        if self._base:
            self._base.supersede()
        self._base = base
        self._churn = self._added.num_rows + len(self._removed)
        self._changed(0)

    def dismiss(self) -> None:
        """The channel is dropped: its file goes as soon as no snapshot uses it."""
        if self._base:
            self._base.supersede()

    @property
    def _last(self) -> int:
        return self._base.last if self._base else 0

    def _changed(self, rows: int) -> None:
        self.rows += rows
        self.generation = next(self._generations)
        self._churn += abs(rows)
        self._snapshot = None

    def _settle(self) -> None:
        added = pa.concat_tables([self._added, *self._came]).combine_chunks()
        if self._gone:
            gone = ascending(np.concatenate(self._gone))
            added = added.filter(pc.invert(pc.is_in(added.column(BE), pa.array(gone))))
            self._removed = together(self._removed, gone[gone <= self._last])
        self._added = added
        self._churn = added.num_rows + len(self._removed)
        self._came.clear()
        self._gone.clear()
