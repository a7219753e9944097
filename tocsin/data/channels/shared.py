"""Channels that processing nodes match: what nodes are told of them, and whether what a node has found still holds."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tocsin.data.channels.arrival import OvertakenError
from tocsin.data.channels.matches import NodeMatch
from tocsin.data.compiler.check import Compiled
from tocsin.data.ids import IdArray, ascending, together
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.location import TOLD_NODES
from tocsin.data.lake.table import Snapshot, Table
from tocsin.data.nodes.channels import DatasetFiles, NodeChannel, SubscriptionFiles
from tocsin.data.store import SetAside
from tocsin.data.subscriptions import Segments, SubscriptionRegistry
from tocsin.data.subscriptions.rows import BE
from tocsin.errors import TocsinError
from tocsin.log import get_logger
from tocsin.schema.definitions import Dataset

log = get_logger(__name__)

MOST_CHANNELS: Final = 64
"""So many channels nodes are told of; further ones are the head's."""
MOST_BYTES: Final = 256 << 10
"""A channel whose description is longer, as its datasets have thousands of files, is the head's."""
_LOOK_SECONDS: Final = 0.05
_FULL_LOOK_SECONDS: Final = 0.5
_KEPT: Final = 3
# Telling may take this part of the time.
_EFFORT: Final = 0.1


class NodeAnnouncer(Protocol):
    """What tells all nodes; from any thread, and without waiting."""

    def datasets(self) -> Collection[str]:
        """Those that nodes fill."""

    def tell(self, dataset: str, channel: NodeChannel, /) -> None:
        """Nodes match a channel with what they read for a dataset."""

    def withdraw(self, dataset: str, channel: str, /) -> None:
        """Nodes do not match it any more."""


@dataclass(eq=False)
class Telling:
    """A channel as nodes were told it. What it names stays while it is kept.

    Args:
        newest_at: when the datasets that it reads as a whole were last seen to have nothing newer.
        outdated: the same, once they were found to have; nobody knows how long before that they had.
        next: not before that it is told anew.
    """

    channel: NodeChannel
    dataset: str
    segments: Segments
    aside: IdArray
    snapshots: Mapping[str, Snapshot]
    newest_at: float
    outdated: float = inf
    next: float = 0.0

    def is_for(self, compiled: Compiled, segments: Segments, aside: IdArray) -> bool:
        """Whether it has this definition, and is for just these subscriptions."""
        return (
            self.channel.compiled == compiled
            and self.segments.generation == segments.generation
            and np.array_equal(self.aside, aside)
        )


class SharedChannels:
    """Looks again and again whether channels have changed, and tells nodes. Its methods may be called from any thread.

    What can go wrong: the disk refuses (nodes are told that they are not to match the channel, and it is tried again);
    what has changed was not told yet (what nodes find meanwhile does not hold, and the head executes).

    Args:
        term: of this data cluster, by which tags differ from those of all others.
    """

    def __init__(
        self,
        lake: Folder,
        term: int,
        tables: Mapping[str, Table],
        datasets: Mapping[str, Dataset],
        subscriptions: SubscriptionRegistry,
        set_aside: SetAside,
        nodes: NodeAnnouncer,
    ) -> None:
        self._folder, self._term = lake.below(TOLD_NODES), term
        self._tables, self._datasets, self._nodes = tables, datasets, nodes
        self._subscriptions, self._set_aside = subscriptions, set_aside
        self._numbers = itertools.count(1)
        self._tellings: dict[str, list[Telling]] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, channels: Callable[[], Iterable[Compiled]], may: Callable[[str], bool]) -> None:
        """Begins to tell of all ``channels`` there are that ``may`` be matched."""
        try:
            self._folder.make()
            for name in self._folder.files():
                self._folder.delete(name)
        except OSError as error:
            log.warning("what nodes were told cannot be removed", reason=str(error))
        self._thread = threading.Thread(target=self._loop, args=(channels, may), name="nodes-channels", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Tells nothing any more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def committed(self, dataset: str) -> None:
        """A dataset has something newer; what nodes were told a moment ago may have it."""
        with self._lock:
            for telling in (telling for tellings in self._tellings.values() for telling in tellings):
                if dataset in telling.snapshots:
                    telling.outdated = min(telling.outdated, self._newest_until(telling))

    def require(self, compiled: Compiled, matches: Sequence[NodeMatch]) -> None:
        """Raises OvertakenError unless what nodes have found of a channel is what an execution would find now."""
        name = compiled.channel.name
        segments, aside = self._subscriptions.segments(name), self._aside(name)
        with self._lock:
            known = {telling.channel.tag: telling for telling in self._tellings.get(name, ())}
            for match in matches:
                telling = known.get(match.tag)
                if telling is None or not telling.is_for(compiled, segments, aside):
                    raise OvertakenError(f"{name} or its subscriptions have changed since nodes were told of them")
                if min(telling.outdated, self._newest_until(telling)) < match.began:
                    raise OvertakenError(f"a dataset that {name} reads had changed before a node began to match it")

    def look(self, channels: Iterable[Compiled], may: Callable[[str], bool]) -> None:
        """Tells nodes what they do not know, and withdraws what they are not to match."""
        self._see()
        wanted = {
            compiled.channel.name: (dataset, compiled) for dataset, compiled in self._choose_channels(channels, may)
        }
        for name in self._tellings.keys() - wanted.keys():
            self._withdraw(name)
        for name, (dataset, compiled) in wanted.items():
            self._tried(name, dataset, compiled, full=True)

    def _loop(self, channels: Callable[[], Iterable[Compiled]], may: Callable[[str], bool]) -> None:
        full = 0.0
        while not self._stopping.wait(_LOOK_SECONDS):
            try:
                if time.monotonic() >= full:
                    self.look(channels(), may)
                    full = time.monotonic() + _FULL_LOOK_SECONDS
                else:
                    self._look_again()
            except Exception:
                log.exception("fault while nodes were told of channels")

    def _look_again(self) -> None:
        """What changes often: subscriptions and datasets of channels that nodes know."""
        self._see()
        for name, tellings in list(self._tellings.items()):
            newest = tellings[-1]
            self._tried(name, newest.dataset, newest.channel.compiled, full=False)

    def _see(self) -> None:
        """Takes note of when datasets had nothing newer."""
        with self._lock:
            for telling in (telling for tellings in self._tellings.values() for telling in tellings):
                self._newest_until(telling)

    def _newest_until(self, telling: Telling) -> float:
        """Until when its datasets surely had nothing newer; infinity if they have not. With the lock held.

        A commit is there a moment before it is told of.
        """
        now = time.monotonic()
        if telling.outdated < inf or any(self._has_newer(*both) for both in telling.snapshots.items()):
            return telling.newest_at
        telling.newest_at = now
        return inf

    def _has_newer(self, dataset: str, told: Snapshot) -> bool:
        table = self._tables.get(dataset)
        return table is None or table.version != told.version

    def _choose_channels(
        self, channels: Iterable[Compiled], may: Callable[[str], bool]
    ) -> Iterator[tuple[str, Compiled]]:
        shared = set(self._nodes.datasets())
        matched = [(next(iter(each.fresh)), each) for each in channels if len(each.fresh) == 1]
        fitting = [(dataset, each) for dataset, each in matched if dataset in shared and each.is_matched_with(dataset)]
        able = (both for both in sorted(fitting, key=_name) if self._is_wanted(both[1].channel.name, may))
        return itertools.islice(able, MOST_CHANNELS)

    def _is_wanted(self, name: str, may: Callable[[str], bool]) -> bool:
        with suppress(TocsinError):
            return may(name) and self._subscriptions.count(name) > 0
        return False

    def _tried(self, name: str, dataset: str, compiled: Compiled, full: bool) -> None:
        try:
            self._update(name, dataset, compiled, full)
        except (TocsinError, OSError, KeyError) as error:
            # It was dropped, or the disk refuses.
            log.debug("nodes are not told of a channel", channel=name, reason=str(error))
            self._withdraw(name)

    def _update(self, name: str, dataset: str, compiled: Compiled, full: bool) -> None:
        newest, now = self._newest(name), time.monotonic()
        if newest is not None and now < newest.next:
            return
        segments = self._subscriptions.segments(name)
        aside = newest.aside if newest is not None and not full else self._aside(name)
        snapshots = {whole: self._tables[whole].snapshot for whole in compiled.whole}
        known = newest is not None and newest.is_for(compiled, segments, aside)
        if newest is not None and known and _are_same(newest.snapshots, snapshots, full):
            return
        subscribed = newest.channel.subscriptions if newest is not None and known else self._write(segments, aside)
        files = [DatasetFiles(self._datasets[whole], snapshot.paths()) for whole, snapshot in snapshots.items()]
        channel = NodeChannel(f"{self._term}.{next(self._numbers)}", compiled, files, subscribed)
        if len(msgspec.json.encode(channel)) > MOST_BYTES:
            self._withdraw(name)
            return
        self._keep(Telling(channel, dataset, segments, aside, snapshots, newest_at=now), began=now)
        self._nodes.tell(dataset, channel)

    def _newest(self, name: str) -> Telling | None:
        tellings = self._tellings.get(name)
        return tellings[-1] if tellings else None

    def _keep(self, telling: Telling, began: float) -> None:
        with self._lock:
            tellings = self._tellings.setdefault(telling.channel.name, [])
            tellings.append(telling)
            gone, tellings[:] = tellings[:-_KEPT], tellings[-_KEPT:]
            now = time.monotonic()
            telling.next = now + (now - began) / _EFFORT
            # Nobody could say so of a telling that was not kept yet.
            telling.outdated = self._newest_until(telling)
        self._remove(gone, tellings)

    def _withdraw(self, name: str) -> None:
        with self._lock:
            gone = self._tellings.pop(name, [])
        for telling in gone[-1:]:
            self._nodes.withdraw(telling.dataset, name)
        self._remove(gone, [])

    def _remove(self, gone: Iterable[Telling], kept: Iterable[Telling]) -> None:
        """Removes the files that only these have."""
        used = {name for telling in kept for name in _files(telling)}
        for name in {name for telling in gone for name in _files(telling)} - used:
            with suppress(OSError):
                self._folder.delete(name)

    def _aside(self, name: str) -> IdArray:
        return ascending([be for be, _, _ in self._set_aside.of(name, time.time())])

    def _write(self, segments: Segments, aside: IdArray) -> SubscriptionFiles:
        """Subscriptions as nodes read them: those set aside are not among them."""
        number = next(self._numbers)
        added = segments.added.filter(pc.invert(pc.is_in(segments.added.column(BE), pa.array(aside))))
        removed = pa.table({BE: pa.array(together(segments.removed.to_numpy(), aside))})
        return SubscriptionFiles(
            generation=number,
            rows=segments.rows,
            base=segments.base,
            base_rows=segments.base_rows,
            added=self._put(f"{self._term}-{number}-added.parquet", added),
            removed=self._put(f"{self._term}-{number}-removed.parquet", removed) if segments.base else "",
        )

    def _put(self, name: str, rows: pa.Table) -> str:
        if not rows.num_rows:
            return ""
        content = pa.BufferOutputStream()
        pq.write_table(rows, content)
        self._folder.write(name, content.getvalue().to_pybytes())
        return name


def _name(of: tuple[str, Compiled]) -> str:
    return of[1].channel.name


def _files(telling: Telling) -> list[str]:
    subscriptions = telling.channel.subscriptions
    return [name for name in (subscriptions.added, subscriptions.removed) if name]


def _are_same(known: Mapping[str, Snapshot], now: Mapping[str, Snapshot], full: bool) -> bool:
    """Whether datasets have nothing new; at a ``full`` look also, whether they are in the same files."""
    if full:
        return all(known[name] is snapshot for name, snapshot in now.items())
    return all(known[name].version == snapshot.version for name, snapshot in now.items())
