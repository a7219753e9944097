"""Teaching the index of seen ids what the dataset has and the index has not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from tocsin.data.feeds.identity import SeenIds
from tocsin.data.lake.table import VERSION, Table
from tocsin.data.lake.view import TableView


def teach(seen: SeenIds, table: Table | TableView, key: str, until: int | None = None) -> None:
    """Lets ``seen`` know the ids, in the column ``key``, of all that the dataset has; little is in memory at a time.

    ``until`` is the version up to which, if not up to the newest.
    """
    newest = table.version if until is None else until
    if seen.version > newest:
        # The dataset was put back to an earlier state: what came after that is not there any more.
        seen.clear()
    if seen.version == newest:
        return
    for last in list(_steps(table, seen.version, newest, seen.spill)):
        versions = pc.field(VERSION)
        ids = table.read((versions > seen.version) & (versions <= last), [key], since=seen.version).column(0)
        seen.add(ids.to_pylist(), last)


def _steps(table: Table | TableView, since: int, newest: int, most: int) -> Iterator[int]:
    """Versions up to which to go, with about ``most`` rows in between, up to the newest."""
    rows: Counter[int] = Counter()
    versions = pc.field(VERSION)
    for batch in table.batches((versions > since) & (versions <= newest), [VERSION], since):
        found, counts = np.unique(batch.column(0).to_numpy(), return_counts=True)
        rows.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
    waiting = 0
    for version in sorted(rows):
        waiting += rows[version]
        if waiting >= most:
            yield version
            waiting = 0
    yield newest
