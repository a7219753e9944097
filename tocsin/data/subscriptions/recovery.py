"""A channel's live subscriptions from the store, after a start: what the base has need not be read again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tocsin.data.store import Store
from tocsin.data.subscriptions.base import Base
from tocsin.data.subscriptions.ids import NONE, IdArray, among, ascending, without
from tocsin.data.subscriptions.live import Live
from tocsin.data.subscriptions.rows import columns, table
from tocsin.schema.definitions import Channel
from tocsin.schema.parameters import from_key


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
