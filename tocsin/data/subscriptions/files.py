"""The folder of base files: at most one of each channel counts, the newest that is sound."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from typing import Final

import numpy as np
import pyarrow as pa

from tocsin.data.ids import NONE, IdArray, among, ascending, without
from tocsin.data.lake.folder import Folder
from tocsin.data.store import Store
from tocsin.data.subscriptions.base import Base
from tocsin.data.subscriptions.live import Live
from tocsin.data.subscriptions.rows import columns, table
from tocsin.errors import StorageError
from tocsin.schema.definitions import Channel
from tocsin.schema.parameters import from_key

_NUMBERS_PER_TERM: Final = 32
_NAME: Final = re.compile(r"(?P<channel>\w+)-(?P<number>\d+)\.parquet")


class BaseFiles:
    """Where base files are found and written. Each gets a number of its own, so that none is ever overwritten.

    Args:
        folder: made when missing; nothing else may be kept in it.
        store: the identity of the store that the subscriptions are in.
        term: of this data cluster; one that was superseded may still write and remove files, under other numbers.
    """

    def __init__(self, folder: Folder, store: str, term: int = 0) -> None:
        self._folder, self._store, self._term = folder, store, term
        try:
            folder.make()
            self._found = sorted(self._numbered_files(), reverse=True)
        except OSError as error:
            raise StorageError(f"{folder.url} cannot be used: {error.strerror or error}") from error
        self._numbers = count(max(self._found[0][0] + 1 if self._found else 1, term << _NUMBERS_PER_TERM))

    def newest(self, channel: str, schema: pa.Schema) -> Base | None:
        """The newest sound base of the channel that an earlier process left."""
        for _, of_channel, name in self._found:
            if of_channel == channel and (base := Base.open(self._folder, name, schema, self._store)):
                return self._own(channel, name, base)
        return None

    def write(self, channel: str, rows: pa.Table) -> Base | None:
        """The rows as a new base; no rows need none."""
        if not rows.num_rows:
            return None
        return Base.write(self._folder, f"{channel}-{next(self._numbers)}.parquet", rows, self._store)

    def _own(self, channel: str, name: str, base: Base) -> Base:
        """The same under a number of this term, which nobody else removes."""
        if not self._term:
            return base
        own = f"{channel}-{next(self._numbers)}.parquet"
        try:
            self._folder.link(name, own)
        except OSError:
            return base
        return Base(self._folder, own, base.rows, base.last)

    def sweep(self, kept: set[str]) -> None:
        """Remove what earlier processes left, except the files at these paths."""
        for name in self._folder.files():
            if self._folder.path(name) not in kept:
                self._folder.delete(name)

    def _numbered_files(self) -> list[tuple[int, str, str]]:
        matches = [_NAME.fullmatch(name) for name in self._folder.files()]
        return [(int(match["number"]), match["channel"], match[0]) for match in matches if match]


def recover(store: Store, channel: Channel, base: Base | None, generations: Iterator[int]) -> Live:
    """The subscriptions as the store has them, told as the difference from ``base``."""
    known = base.ids() if base else NONE
    exist, came = _difference(store, channel, known)
    if base and any(np.min(rows.column(0).to_numpy()) < base.last for rows in came):
        # It lacks a row that it should have: not one of ours.
        return recover(store, channel, None, generations)
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
