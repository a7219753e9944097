"""A feed's function at a processing node: run where its rows are, in processes of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import pyarrow.compute as pc
from pyspark.sql import DataFrame

from tocsin.data.feeds.deadletters import COLUMNS, count_beyond
from tocsin.data.feeds.ingest import marker
from tocsin.data.feeds.parsing import DEAD_LETTERS
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.view import TableView
from tocsin.data.nodes.sharing import SharedFeed
from tocsin.data.processing.process import check_function
from tocsin.data.processing.stage import Letter, Processing
from tocsin.functions import require_allowed
from tocsin.schema.arrow import record_schema

_FEWEST_BYTES: Final = 64 << 10
_BATCH_SECONDS: Final = 2.0


class FunctionPace:
    """How much of the log a batch takes, so that a slow function has it done in about two seconds.

    A slice moves when its giver's last batch is stored, and is taken from a node that stores none for too long.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.max_bytes = min(_FEWEST_BYTES, most)

    def took(self, size: int, seconds: float) -> None:
        """A batch of so many bytes has taken so long."""
        wanted = int(size / max(seconds, 1e-3) * _BATCH_SECONDS)
        self.max_bytes = min(max(min(wanted, 2 * self.max_bytes), _FEWEST_BYTES), self._most)


class NodeFunction:
    """The function of a shared feed. A function may give no key but those it was given: another one's slice may be
    somebody else's, who would not know that its id was seen.

    Raises InvalidError where it is not allowed, or cannot be imported.

    What can go wrong: it fails on records (these become dead letters); the dead letters cannot be read
    (UnavailableError: it may be tried again).

    Args:
        allowed: the modules that functions may be of in this process, by its own settings.
    """

    def __init__(self, shared: SharedFeed, lake: Folder, allowed: list[str]) -> None:
        function, dataset, limits = shared.feed.processed_by, shared.dataset, shared.function
        require_allowed(function, allowed, "this node")
        check_function(function, limits.memory)
        self._slices = shared.feed.slices
        self._processing = Processing(
            function,
            record_schema(dataset.columns),
            dataset.primary_key,
            limits.seconds,
            limits.memory,
            keeps_keys=True,
        )
        names = [marker(index) for index in range(self._slices)]
        self._letters = TableView(lake.below(shared.dead_letters), DEAD_LETTERS, names)
        self.pace = FunctionPace(shared.max_batch_bytes)

    def apply(self, rows: DataFrame, starts: Mapping[int, int]) -> DataFrame:
        """What it makes of rows that come after ``starts``; those that are dead letters already are left out."""
        floor = [starts.get(index, 0) for index in range(self._slices)]
        return rows.mapInArrow(self._processing.process(floor, self._find_earlier_letters(starts, floor)), rows.schema)

    def _find_earlier_letters(self, starts: Mapping[int, int], floor: list[int]) -> Counter[Letter]:
        """What an earlier attempt has left in the dead letters, as where the dataset refused after that."""
        self._letters.refresh()
        if all(self._letters.marker(marker(index)) <= start for index, start in starts.items()):
            return Counter()
        found = self._letters.read(pc.field("position") > min(starts.values()), COLUMNS, -1)
        return count_beyond(found, floor)
