"""The directory of base files: at most one of each channel counts, the newest that is sound."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from tocsin.data.store import Store
from tocsin.data.subscriptions.base import Base
from tocsin.data.subscriptions.ids import NONE, IdArray, among, ascending, without
from tocsin.data.subscriptions.live import Live
from tocsin.data.subscriptions.rows import columns, table
from tocsin.errors import StorageError
from tocsin.schema.definitions import Channel
from tocsin.schema.parameters import from_key

_NAME: Final = re.compile(r"(?P<channel>\w+)-(?P<number>\d+)\.parquet")


class BaseFiles:
    """Where base files are found and written. Each gets a number of its own, so that none is ever overwritten.

    Args:
        directory: created when missing; nothing else may be kept in it.
        store: the identity of the store that the subscriptions are in.
    """

    def __init__(self, directory: Path, store: str) -> None:
        self._directory, self._store = directory, store
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{directory} cannot be created: {error.strerror}") from error
        self._found = sorted(self._numbered(), reverse=True)
        self._numbers = count(self._found[0][0] + 1 if self._found else 1)

    def newest(self, channel: str, schema: pa.Schema) -> Base | None:
        """The newest sound base of the channel that an earlier process left."""
        for _, name, path in self._found:
            if name == channel and (base := Base.opened(path, schema, self._store)):
                return base
        return None

    def write(self, channel: str, rows: pa.Table) -> Base | None:
        """The rows as a new base; no rows need none."""
        if not rows.num_rows:
            return None
        return Base.written(self._directory / f"{channel}-{next(self._numbers)}.parquet", rows, self._store)

    def sweep(self, kept: set[Path]) -> None:
        """Remove what earlier processes left, except these."""
        for path in self._directory.iterdir():
            if path not in kept:
                path.unlink(missing_ok=True)

    def _numbered(self) -> list[tuple[int, str, Path]]:
        matches = [(_NAME.fullmatch(path.name), path) for path in self._directory.iterdir()]
        return [(int(match["number"]), match["channel"], path) for match, path in matches if match]


def recovered(store: Store, channel: Channel, base: Base | None, generations: Iterator[int]) -> Live:
    """The subscriptions as the store has them, told as the difference from ``base``."""
    known = base.ids() if base else NONE
    exist, came = _difference(store, channel, known)
    if base and any(np.min(rows.column(0).to_numpy()) < base.last for rows in came):
        # It lacks a row that it should have: not one of ours.
        return recovered(store, channel, None, generations)
    live = Live(channel, generations, base)
    for rows in came:
        live.add(rows)
    live.remove(without(known, exist))
    return live


def _difference(store: Store, channel: Channel, known: IdArray) -> tuple[IdArray, list[pa.Table]]:
    """All ids that exist, and the rows of those that are not known."""
    exist, came = [NONE], []
    for page in store.subscriptions.pages(channel.name):
        ids = np.fromiter((be for be, _ in page), np.int64, len(page))
        exist.append(ids)
        new = np.flatnonzero(~among(ids, known))
        if len(new):
            values = [from_key(channel.parameters, page[place][1]) for place in new]
            came.append(table(channel.parameters, ids[new], columns(channel.parameters, values)))
    return ascending(np.concatenate(exist)), came
