"""Processes of the head and of processing nodes: their cores, their connection, and what takes time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tocsin.broker.backoff import Backoff
from tocsin.simulate.network import SimulatedConnection
from tocsin.simulate.process import CoreProcess, SimulatedWorld
from tocsin.simulate.slices.lake import FencedError, MissingFileError, SimulatedDataset, SlicedLog, WrittenFile
from tocsin.slices import actions, events
from tocsin.slices.head import HeadCore
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import Epoch, FromHead, SliceLoad, SlicePart
from tocsin.slices.node import NodeCore


@dataclass
class Circumstances:
    """How things are for the hosts, and may change meanwhile.

    Args:
        store_seconds: how long the head's disk takes.
        store_fails: the chance that it refuses.
        decide_seconds: how long the controller takes.
        prepare_seconds: how long a node takes to be able to process a slice.
        prepare_fails: the chance that it cannot.
        processing_fails: the chance that a batch fails.
        gauge_seconds: how often a node measures itself, and the head looks at the log.
        blind: nodes that cannot read the log.
        unreadable: slices that nobody can read.
        losing: nodes whose files are gone by the time they are to be stored.
        doubled: the chance that a message comes a second time, up to ``late_seconds`` later.
    """

    store_seconds: float = 0.02
    store_fails: float = 0.0
    decide_seconds: float = 0.05
    prepare_seconds: float = 0.05
    prepare_fails: float = 0.0
    processing_fails: float = 0.0
    gauge_seconds: float = 1.0
    blind: set[str] = field(default_factory=set)
    unreadable: set[int] = field(default_factory=set)
    losing: set[str] = field(default_factory=set)
    doubled: float = 0.0
    late_seconds: float = 2.0


@dataclass
class NodePower:
    """What a node's machine can do: records per second, seconds that every batch takes, and records in one at most."""

    speed: float = 1000.0
    overhead: float = 0.02
    most: int = 10_000


class _Link:
    """One end of a connection between a node and a head."""

    def __init__(self, process: CoreProcess, conditions: Circumstances, said: Callable[[Any], Any], lost: Any) -> None:
        self._process, self._circumstances = process, conditions
        self._said, self._lost = said, lost
        self.link: SimulatedConnection | None = None
        self.stands = True

    def received(self, link: SimulatedConnection, message: Any) -> None:  # noqa: ARG002
        """The other end says something; now and then it comes twice."""
        world = self._process.world
        self._tell(message)
        if self._circumstances.doubled and world.random.random() < self._circumstances.doubled:
            world.clock.after(world.random.random() * self._circumstances.late_seconds, self._tell, message)

    def lost(self, link: SimulatedConnection, code: int) -> None:  # noqa: ARG002
        """It is over, or could not be opened."""
        if self.stands:
            self.stands = False
            self._lost()

    def flushed(self, link: SimulatedConnection) -> None:
        """Nothing waits for that."""

    def _tell(self, message: Any) -> None:
        if self.stands:
            self._process.tell(self._said(message))


class SliceHeadHost(CoreProcess):
    """A head, from its start to its end. ``sent`` is told of every message to a node, before it goes."""

    core: HeadCore

    def __init__(
        self,
        world: SimulatedWorld,
        name: str,
        core: HeadCore,
        log: SlicedLog,
        dataset: SimulatedDataset,
        circumstances: Circumstances,
        sent: Callable[[str, FromHead], None] | None = None,
    ) -> None:
        super().__init__(world, name, core, events.Tick())
        self._log, self._dataset, self._circumstances, self._sent = log, dataset, circumstances, sent
        self._links: dict[int, _Link] = {}
        self._numbers = count(1)
        world.network.listen(name, self._accept)
        world.clock.after(0.0, self.tell, events.Tick())
        world.clock.after(circumstances.gauge_seconds, self._look)

    def carry_out(self, action: actions.Action) -> None:
        """Does what the core wants done."""
        clock, circumstances = self.world.clock, self._circumstances
        match action:
            case actions.Send(connection, message):
                self._send(connection, message)
            case actions.Close(connection):
                link = self._links.pop(connection, None)
                if link and link.link:
                    link.stands = False
                    link.link.close(1)
            case actions.StoreCommits():
                clock.after(circumstances.store_seconds, self._store, action)
            case actions.Decide(round_, controller, now, observed):
                decision = controller.decide(now, observed)
                clock.after(circumstances.decide_seconds, self.tell, events.Decided(round_, decision))

    def _look(self) -> None:
        """Sees how far the log goes."""
        if self.alive:
            now = self.world.clock.now
            self.tell(events.LogReaches([self._log.end(slice_, now) for slice_ in range(self._log.slices)]))
            self.world.clock.after(self._circumstances.gauge_seconds, self._look)

    def _send(self, connection: int, message: FromHead) -> None:
        link = self._links.get(connection)
        if link is None or link.link is None:
            return
        if self._sent:
            self._sent(link.link.hosts[0], message)
        if self.alive:
            link.link.send(1, message)

    def _store(self, store: actions.StoreCommits) -> None:
        """A head that is gone may have stored what it had begun to, or not."""
        random = self.world.random
        if (not self.alive and random.random() < 0.5) or random.random() < self._circumstances.store_fails:
            self.tell(events.StoreFailed(store.number, "the disk is full"))
            return
        try:
            self._dataset.store(store.term, store.commits, store.markers)
        except FencedError:
            # Whoever is told that its term is over ends.
            if self.alive:
                self.crash()
            return
        except MissingFileError as error:
            self.tell(events.StoreFailed(store.number, str(error)))
            return
        self.tell(events.Stored(store.number))

    def _accept(self, link: SimulatedConnection, purpose: str) -> _Link:  # noqa: ARG002
        number = next(self._numbers)
        accepted = self._links[number] = _Link(
            self,
            self._circumstances,
            lambda message: events.NodeSaid(number, message),
            lambda: self._lose(number),
        )
        accepted.link = link
        return accepted

    def _lose(self, number: int) -> None:
        self._links.pop(number, None)
        self.tell(events.NodeLost(number))


class NodeHost(CoreProcess):
    """A processing node's program.

    Args:
        head: where the head is now.
        read: told of the slices of each batch that begins, with the node's name.
    """

    core: NodeCore

    def __init__(
        self,
        world: SimulatedWorld,
        name: str,
        head: Callable[[], str],
        log: SlicedLog,
        dataset: SimulatedDataset,
        power: NodePower,
        circumstances: Circumstances,
        limits: SliceLimits,
        capacity: float = 1.0,
        incarnation: int = 0,
        read: Callable[[str, Iterable[int]], None] | None = None,
    ) -> None:
        super().__init__(world, name, NodeCore(name, capacity, limits), events.Tick())
        self.power, self.incarnation, self._read = power, incarnation, read
        self._head, self._log, self._dataset, self._circumstances = head, log, dataset, circumstances
        self._link: _Link | None = None
        self._busy_until, self._busy, self._gauged = 0.0, 0.0, world.clock.now
        self._done, self._batch_seconds = 0, 0.0
        self._ends: dict[int, tuple[float, int]] = {}
        self._backoff = Backoff(world.random)
        self._since: float | None = None
        self._loads: list[SliceLoad] = []
        self._dial()
        world.clock.after(world.random.random() * circumstances.gauge_seconds, self._gauge)

    def carry_out(self, action: actions.Action) -> None:
        """Does what the core wants done."""
        circumstances = self._circumstances
        match action:
            case actions.SendHead(message):
                if self._link and self._link.link and self._link.stands:
                    self._link.link.send(0, message)
            case actions.Prepare(slices):
                seconds = self.world.random.random() * 2 * circumstances.prepare_seconds
                self.world.clock.after(seconds, self._prepare, slices)
            case actions.Process(batch, slices):
                self._process(batch, slices)
            case actions.Discard(files):
                for name in files:
                    self._dataset.discard(name)
            case actions.EndNode():
                self.crash()

    def _dial(self) -> None:
        if not self.alive:
            return
        link = self._link = _Link(self, self._circumstances, events.HeadSaid, self._lost)
        link.link = self.world.network.dial(self.host, self._head(), "node", link)
        link.link.when_open = self._opened

    def _opened(self) -> None:
        self._since = self.world.clock.now
        self.tell(events.HeadOpened())

    def _lost(self) -> None:
        clock = self.world.clock
        self.tell(events.HeadLost())
        lasted, self._since = 0.0 if self._since is None else clock.now - self._since, None
        clock.after(self._backoff.after(lasted), self._dial)

    def _prepare(self, slices: dict[int, Epoch]) -> None:
        if self.world.random.random() < self._circumstances.prepare_fails:
            self.tell(events.PreparationFailed(slices, "the log cannot be read from here"))
        else:
            self.tell(events.SlicesPrepared(slices))

    def _process(self, batch: int, slices: dict[int, tuple[Epoch, int]]) -> None:
        """Reads what is there, and has it written after a while; one batch after the other."""
        now, most = self.world.clock.now, self.power.most
        if self._read:
            self._read(self.host, slices)
        parts = []
        for slice_, (epoch, position) in slices.items():
            end = min(self._log.end(slice_, now), position + most)
            if end > position:
                parts.append(SlicePart(slice_, epoch, position, end, end - position))
                most -= end - position
        bad = [part.slice for part in parts if part.slice in self._circumstances.unreadable]
        if bad or self.host in self._circumstances.blind:
            reason = f"slice {bad[0]} cannot be read" if bad else "the log does not answer"
            self.world.clock.after(self.power.overhead, self.tell, events.ProcessingFailed(batch, reason))
            return
        if not parts:
            self.tell(events.Processed(batch, [], []))
            return
        records = sum(part.records for part in parts)
        seconds = self.power.overhead + records / self.power.speed
        begin = max(now, self._busy_until)
        self._busy_until = begin + seconds
        self._busy += seconds
        self._done += records
        self._batch_seconds = seconds
        self.world.clock.at(self._busy_until, self._written, batch, parts)

    def _written(self, batch: int, parts: list[SlicePart]) -> None:
        if not self.alive:
            return
        if self.world.random.random() < self._circumstances.processing_fails:
            self.tell(events.ProcessingFailed(batch, "the function failed"))
            return
        name = f"{self.host}.{self.incarnation}-{batch}"
        if self.host not in self._circumstances.losing:
            self._dataset.files[name] = WrittenFile(tuple(row for part in parts for row in self._log.new_records(part)))
        self.tell(events.Processed(batch, parts, [name]))

    def _gauge(self) -> None:
        """Measures what comes for its slices, and how busy it is."""
        if not self.alive:
            return
        now = self.world.clock.now
        seconds = max(now - self._gauged, 1e-9)
        blind = "the log does not answer" if self.host in self._circumstances.blind else ""
        if not blind:
            self._loads = [self._load(slice_, now) for slice_ in self.core.slices]
        # What is begun and not yet done is work of the time to come.
        ahead = max(self._busy_until - now, 0.0)
        cpu, rows = min(max((self._busy - ahead) / seconds, 0.0), 1.0), self._done / seconds
        self._busy, self._done, self._gauged = ahead, 0, now
        self.tell(events.Gauged(cpu, 0.1, rows, self._batch_seconds, self._loads, blind))
        self.world.clock.after(self._circumstances.gauge_seconds, self._gauge)

    def _load(self, slice_: int, now: float) -> SliceLoad:
        end = self._log.end(slice_, now)
        since, before = self._ends.get(slice_, (now - 1.0, self._log.end(slice_, now - 1.0)))
        self._ends[slice_] = now, end
        rate = (end - before) / max(now - since, 1e-9)
        position = self.core.slices[slice_].position
        return SliceLoad(slice_, round(1000 * rate), 1000 * max(end - position, 0) if position is not None else 0)
