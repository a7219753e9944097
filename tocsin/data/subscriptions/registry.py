"""The registry of BE subscriptions: every change goes through it, to the store first and then into memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.data.ids import NONE, IdArray, Ids, ascending, common
from tocsin.data.lake.directory import as_folder
from tocsin.data.lake.folder import Folder
from tocsin.data.store import Store
from tocsin.data.subscriptions.files import BaseFiles, recover
from tocsin.data.subscriptions.live import Live
from tocsin.data.subscriptions.rows import BE, Row, canonical_rows, columns, schema, table
from tocsin.data.subscriptions.segments import Segments
from tocsin.errors import NotFoundError, StorageError
from tocsin.log import get_logger
from tocsin.model.bounds import PARAMETER_BYTES
from tocsin.model.quoting import quote_value
from tocsin.schema.definitions import Channel
from tocsin.schema.parameters import from_key, key

log = get_logger(__name__)


class SubscriptionRegistry:
    """All live BE subscriptions, by channel and by broker. Every method may be called from any thread.

    What has been attached or detached is on disk when the call returns. One registry at a time may use a store.
    In memory a subscription costs eight bytes for each broker that holds it, beside what is not yet in a base file.

    Args:
        store: where subscriptions survive; channels must be defined and brokers registered there before they attach.
        place: the folder, or directory, of the base files, which are made anew when they are missing.
        parameter_bytes: what a subscription's values may have at most, as JSON.
    """

    def __init__(self, store: Store, place: Folder | Path, parameter_bytes: int = PARAMETER_BYTES) -> None:
        self._store, self._parameter_bytes = store, parameter_bytes
        self._files = BaseFiles(as_folder(place), store.identity, store.term)
        self._generations = count(1)
        # Changes come one at a time, so that memory learns of new ids in the order in which the store gave them out.
        self._changing = Lock()
        # Guards the fields below, and is never held while something is being written.
        self._state = Lock()
        self._rebasing = Lock()
        self._channels = self._recover()
        self._holdings = {broker: Ids(bes) for broker, bes in store.subscriptions.holdings().items()}
        self._highest = max((int(held.array()[-1]) for held in self._holdings.values() if len(held.array())), default=0)
        for channel in self.due():
            self._try_rebase(channel)

    def attach(self, channel: Channel, broker: str, values: Sequence[Mapping[str, object]]) -> list[int]:
        """Let the broker hold a subscription for each of ``values``; returns their ids in that order.

        Equal subscriptions are one, and attaching again what is held changes nothing. If one element is invalid,
        nothing is attached and the error names its index.
        """
        return self.attach_rows(channel, broker, self.canonical(channel, values))

    def canonical(self, channel: Channel, values: Sequence[Mapping[str, object]]) -> list[Row]:
        """The values in the form in which equal ones are the same; refused as :meth:`attach` would."""
        return canonical_rows(channel, values, self._parameter_bytes) if values else []

    def attach_rows(self, channel: Channel, broker: str, rows: Sequence[Row]) -> list[int]:
        """The same with values that are canonical already."""
        if not rows:
            return []
        arrays = columns(channel.parameters, rows)
        with self._changing:
            bes = self._store.subscriptions.attach(channel, broker, [key(row) for row in rows])
            ids, places = np.unique(np.array(bes, np.int64), return_index=True)
            new = ids > self._highest
            self._highest = max(self._highest, int(ids[-1]))
            added = table(channel.parameters, ids[new], [array.take(pa.array(places[new])) for array in arrays])
            with self._state:
                live = self._live(channel)
                live.add(added)
                self._holdings.setdefault(broker, Ids()).add(ids)
        self._look_after(live)
        return bes

    def detach(self, broker: str, bes: Iterable[int]) -> IdArray:
        """The broker lets go of these; returns the ones that are gone, as no broker holds them any more.

        What the broker does not hold is passed over.
        """
        ids = ascending(bes)
        with self._changing:
            gone = self._store.subscriptions.detach(broker, ids.tolist())
            with self._state:
                self._holdings.setdefault(broker, Ids()).discard(ids)
                shrunk = [self._channels[channel] for channel in gone]
                for live, removed in zip(shrunk, gone.values(), strict=True):
                    live.remove(ascending(removed))
        for live in shrunk:
            self._look_after(live)
        return ascending([be for removed in gone.values() for be in removed])

    def leave(self, broker: str) -> IdArray:
        """The broker lets go of all it holds, after which the store can forget it; returns what is gone."""
        return self.detach(broker, self.of(broker))

    def drop(self, channel: str) -> IdArray:
        """Remove all subscriptions of the channel, before or after its definition; returns what is gone."""
        with self._changing:
            with self._state:
                live = self._channels.get(channel.casefold())
                if live is None:
                    return NONE
                segments = live.snapshot()
            ids = segments.ids()
            self._store.subscriptions.drop(channel)
            with self._state:
                del self._channels[channel.casefold()]
                live.dismiss()
                for held in self._holdings.values():
                    held.discard(ids)
        return ids

    def segments(self, channel: str) -> Segments:
        """The channel's subscriptions at this moment; costs what changed since the last base, not what is in it."""
        with self._state:
            return self._require_live(channel).snapshot()

    def count(self, channel: str) -> int:
        """How many subscriptions the channel has."""
        with self._state:
            return self._require_live(channel).rows

    def holders(self, bes: Iterable[int]) -> dict[str, IdArray]:
        """Which of these each broker holds, ascending; brokers that hold none are left out."""
        ids = ascending(bes)
        with self._state:
            held = {broker: held.array() for broker, held in self._holdings.items()}
        shares = {broker: common(array, ids) for broker, array in held.items()}
        return {broker: share for broker, share in shares.items() if len(share)}

    def among(self, bes: Iterable[int]) -> IdArray:
        """Those of these that somebody holds, ascending."""
        return ascending(np.concatenate([NONE, *self.holders(bes).values()]))

    def of(self, broker: str) -> IdArray:
        """All that the broker holds, ascending."""
        with self._state:
            held = self._holdings.get(broker)
            return held.array() if held else NONE

    def values(self, be: int) -> tuple[str, dict[str, object]]:
        """The channel and the parameter values of a subscription."""
        found = self._store.subscriptions.find(int(ascending([be])[0]))
        if found is None:
            raise NotFoundError(f"there is no subscription {be}: it may have been detached by all brokers")
        with self._state:
            channel = self._require_live(found[0]).channel
        values = from_key(channel.parameters, found[1])
        return channel.name, {column.name: value for column, value in zip(channel.parameters, values, strict=True)}

    def due(self) -> list[str]:
        """Channels with so many changes that a new base is worth its cost: :meth:`rebase` them at leisure.

        When nobody does and they have twice as many, the next change does it.
        """
        with self._state:
            return [live.channel.name for live in self._channels.values() if live.changes_exceed(1)]

    def rebase(self, channel: str) -> bool:
        """Write the channel's base anew if anything changed since; subscriptions can change meanwhile."""
        with self._rebasing:
            with self._state:
                live = self._require_live(channel)
                segments = live.snapshot()
            if not segments.changes:
                return False
            base = self._files.write(channel.casefold(), _rows(segments))
            with self._state:
                if self._channels.get(channel.casefold()) is live:
                    live.adopt(base, segments)
                elif base:
                    base.supersede()
        # Arrow would keep the room that the whole table took.
        pa.default_memory_pool().release_unused()
        return True

    def _recover(self) -> dict[str, Live]:
        channels = {}
        for stored in self._store.definitions.all():
            if isinstance(channel := stored.definition, Channel):
                name = channel.name.casefold()
                base = self._files.newest(name, schema(channel.parameters))
                channels[name] = recover(self._store, channel, base, self._generations)
        used = [live.snapshot().base for live in channels.values()]
        self._files.sweep({path for path in used if path})
        return channels

    def _live(self, channel: Channel) -> Live:
        """The state of a channel that the store has just accepted as defined so."""
        name = channel.name.casefold()
        live = self._channels.get(name)
        if live is None or live.channel.parameters != channel.parameters:
            if live:
                live.dismiss()
            live = self._channels[name] = Live(channel, self._generations)
        live.channel = channel
        return live

    def _require_live(self, channel: str) -> Live:
        live = self._channels.get(channel.casefold())
        if live is not None and live.rows:
            return live
        # Without subscriptions it may have been dropped or created anew, which nobody need tell us.
        definition = self._store.definitions.find(Channel, channel)
        if definition is None:
            raise NotFoundError(f"there is no channel {quote_value(channel)}: create it first")
        return self._live(definition)

    def _look_after(self, live: Live) -> None:
        with self._state:
            overdue = live.changes_exceed(2)
        if overdue and not self._rebasing.locked():
            self._try_rebase(live.channel.name)

    def _try_rebase(self, channel: str) -> None:
        try:
            self.rebase(channel)
        except (StorageError, NotFoundError) as error:
            # The changes are safe in the store and are carried along in memory until it works.
            log.warning("base file not written", channel=channel, error=str(error))


def _rows(segments: Segments) -> pa.Table:
    """The subscriptions as one table."""
    if segments.held is None:
        return segments.added
    base = segments.held.read()
    kept = base.filter(pc.invert(pc.is_in(base.column(BE), segments.removed)))
    return pa.concat_tables([kept, segments.added])
