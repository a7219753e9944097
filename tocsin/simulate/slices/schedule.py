"""One random schedule for processing nodes: trouble for a while, then healing, then the verdict."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tocsin.balance.control.thresholds import Thresholds
from tocsin.simulate.faults.schedule import ScheduleOutcome, make_trouble
from tocsin.simulate.faults.weather import CALM
from tocsin.simulate.network import Conditions
from tocsin.simulate.slices.hosts import Circumstances, NodeHost, NodePower, SliceHeadHost
from tocsin.simulate.slices.invariants import violations
from tocsin.simulate.slices.lake import RecordedLog
from tocsin.simulate.slices.system import SliceSystem
from tocsin.slices import events
from tocsin.slices.balancing import SlicePlanners
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import AddSlices, FromHead, RemoveSlices, UpdateSlices

NODES = ("a", "b", "c", "d")
HEALING, ARRIVING = 25.0, 25.0
LATE = 12.0


class SliceSchedule:
    """Nodes, a head, and what happens to them: all of it follows from the seed."""

    def __init__(self, seed: int, show: Callable[[str], None] | None = None) -> None:
        self._seed, self._random = seed, Random(seed)
        random = self._random
        self.log = RecordedLog(random.choice([3, 8, 12]))
        self.system = SliceSystem(
            self.log,
            random.getrandbits(32),
            _limits(random),
            lambda: SlicePlanners.by_name("migrate", "shuffle", _eager()),
            _conditions(random),
            _circumstances(random),
            show=show,
        )
        self.system.sent = self._on_the_way
        self._nasty, self._healed, self._publishing = random.random(), False, True
        # What gets lost makes everything else wait, so that there is less of that.
        self._lossy = seed % 3 == 0
        self._skew = random.choice([0.0, 1.0, 2.0])
        self._records = 0
        self._unused: list[str] = []
        self._late: list[str] = []

    def run(self) -> ScheduleOutcome:
        """From the beginning to the verdict."""
        self._begin()
        faults = make_trouble(self._random, self._happen, self.system.advance)
        self._heal()
        system = self.system
        return ScheduleOutcome(
            self._seed,
            system.trace.fingerprint,
            system.trace.events,
            len(system.dataset.rows),
            sum(host.core.sessions.moves for host in system.heads),
            faults,
            violations(system) + self._unused + self._late,
        )

    def _begin(self) -> None:
        self.system.start_head()
        for name in NODES[: self._random.choice([2, 3, 4])]:
            self._start(name)
        self._publish()
        self.system.advance(self._random.choice([0.0, 4.0]))

    def _publish(self) -> None:
        """Publishes again and again; now and then what was published before, as somebody who got no answer does."""
        if not self._publishing:
            return
        random = self._random
        if self._records and random.random() < 0.05:
            record = random.randrange(self._records)
        else:
            record, self._records = self._records, self._records + 1
        slice_ = int(self.log.slices * Random(record).random() ** (1 + self._skew))
        self.log.append(slice_, self.system.clock.now, record)
        self.system.clock.after(random.uniform(0.0, 0.1), self._publish)

    def _start(self, name: str) -> None:
        random = self._random
        power = NodePower(
            random.choice([20.0, 100.0, 1000.0]), random.choice([0.01, 0.1, 0.5]), random.choice([5, 500])
        )
        self.system.start_node(name, power, random.choice([1.0, 1.0, 2.0]))

    def _happen(self) -> None:
        """One trouble."""
        random = self._random
        troubles: list[tuple[Callable[[], None], int]] = [
            (self._crash_node, 4),
            (self._crash_head, 2),
            (self._depose_head, 1),
            (self._start_node, 6),
            (self._start_head, 5),
            (self._light_fuse, 4),
            (self._cut, 3),
            (self._mend, 3),
            (self._break_link, 4),
            (self._drain, 3),
            (self._undrain, 2),
            (self._spare, 2),
            (self._leave, 1),
            (self._blind, 2),
            (self._spoil, 2),
            *([(self._lose_files, 2)] if self._lossy else []),
        ]
        chosen, _ = random.choices(troubles, [weight for _, weight in troubles])[0]
        chosen()

    def _on_the_way(self, node: str, message: FromHead) -> None:
        """The head tells a node of a step of a session, which is when things had better not break."""
        if not isinstance(message, AddSlices | UpdateSlices | RemoveSlices):
            return
        if self._healed or self._random.random() > self._nasty:
            return
        head = self.system.head
        others = [name for name, host in self.system.nodes.items() if host.alive and name != node]
        hits: list[Callable[[], None]] = [
            lambda: self.system.crash(node),
            lambda: self.system.crash(self._random.choice(others or [node])),
            lambda: head.crash() if head.alive else None,
            lambda: self._sever(head.host, node),
            self._break_link,
            self._light_fuse,
        ]
        hit = self._random.choice(hits)
        seconds = self._random.choice([0.0, 0.01, 0.05, 0.2, 1.0])
        self.system.clock.after(seconds, lambda: None if self._healed else hit())

    def _hosts(self) -> list[SliceHeadHost | NodeHost]:
        return [self.system.head, *self.system.nodes.values()]

    def _crash_node(self) -> None:
        self.system.crash(self._random.choice(NODES))

    def _crash_head(self) -> None:
        self.system.crash("head")

    def _depose_head(self) -> None:
        """Another head begins, as the one that is there was thought to be gone."""
        self.system.start_head()

    def _start_node(self) -> None:
        self._start(self._random.choice(NODES))

    def _start_head(self) -> None:
        self.system.restart_head()

    def _light_fuse(self) -> None:
        self._random.choice(self._hosts()).fuse = self._random.randrange(12)

    def _sever(self, one: str, two: str) -> None:
        self.system.remark(f"{one} and {two} are cut off")
        self.system.network.sever(one, two)

    def _cut(self) -> None:
        self._sever(self.system.head.host, self._random.choice(NODES))

    def _mend(self) -> None:
        self.system.network.mend_all()

    def _break_link(self) -> None:
        links = self.system.network.links(self._random.choice(self._hosts()).host)
        if links:
            link = self._random.choice(links)
            self.system.remark(f"the link of {link.hosts} breaks")
            link.sever()

    def _drain(self) -> None:
        self.system.drain(self._random.choice(NODES))

    def _spare(self) -> None:
        """A node seems not to be needed, or is needed after all."""
        self.system.spare(self._random.choice(NODES), self._random.random() < 0.7)

    def _undrain(self) -> None:
        for name in NODES:
            self.system.drain(name, False)

    def _leave(self) -> None:
        host = self.system.nodes.get(self._random.choice(NODES))
        if host and host.alive:
            host.tell(events.LeaveWanted())

    def _blind(self) -> None:
        """A node cannot read the log any more, or all can again."""
        blind = self.system.circumstances.blind
        if blind:
            blind.clear()
        else:
            blind.add(self._random.choice(NODES))
        self.system.remark(f"{sorted(blind) or 'nobody'} cannot read the log")

    def _spoil(self) -> None:
        """Nobody can read a slice any more, or all can be read again."""
        unreadable = self.system.circumstances.unreadable
        if unreadable:
            unreadable.clear()
        else:
            unreadable.add(self._random.randrange(self.log.slices))
        self.system.remark(f"{sorted(unreadable) or 'no slice'} cannot be read")

    def _lose_files(self) -> None:
        """What a node has written is gone before it is stored from now on, or stays again."""
        losing = self.system.circumstances.losing
        if losing:
            losing.clear()
        else:
            losing.add(self._random.choice(NODES))
        self.system.remark(f"files of {sorted(losing) or 'nobody'} get lost")

    def _heal(self) -> None:
        """Everything is repaired, and there is time for all that was missed.

        But that one node may go on without the log, or what it writes may get lost for a while, and one slice cannot be
        read: others get on.
        """
        system, self._healed = self.system, True
        system.remark("everything heals")
        system.network.conditions = CALM
        circumstances = system.circumstances
        circumstances.doubled = circumstances.store_fails = 0.0
        circumstances.prepare_fails = circumstances.processing_fails = 0.0
        circumstances.prepare_seconds = circumstances.store_seconds = 0.02
        system.network.mend_all()
        for deposed in system.heads[:-1]:
            if deposed.alive:
                deposed.crash()
        system.restart_head()
        missing = self._random.choice([None, *NODES])
        circumstances.blind.clear()
        circumstances.unreadable.clear()
        circumstances.losing.clear()
        if self._random.random() < 0.3:
            self._blind()
        if self._random.random() < 0.3:
            self._spoil()
        # Of four nodes one may be missing and one about to leave: two more that cannot do anything would be too many.
        if self._lossy and not circumstances.blind and self._random.random() < 0.7:
            self._lose_files()
            # What others offer waits while something is stored that will fail.
            circumstances.store_seconds = 0.2
        for name in NODES:
            if name == missing:
                system.crash(name)
            else:
                self._start(name)
        self._repair_hosts()
        self._undrain()
        self._unused, self._late = self._find_unused(), self._find_late()
        circumstances.unreadable.clear()
        circumstances.losing.clear()
        circumstances.store_seconds = 0.02
        for name in NODES:
            if name != missing:
                self._start(name)
        self._repair_hosts()
        # Nobody is busy any more, so no session begins; what was published last is processed.
        self._publishing = False
        system.advance(ARRIVING)

    def _repair_hosts(self) -> None:
        """Nobody crashes any more, and nobody is slow."""
        for host in self._hosts():
            host.fuse = None
            if isinstance(host, NodeHost):
                host.power = NodePower(speed=10_000.0)

    def _find_unused(self) -> list[str]:
        """Lets time heal; nodes that were there all the while and never had a slice, though there are plenty."""
        system, began = self.system, dict(self.system.nodes)
        used: set[str] = set()
        for _ in range(int(HEALING)):
            system.advance(1.0)
            used |= {owned.owner for owned in system.head.core.ownership.slices if owned.owner}
        there = {name for name, host in system.nodes.items() if host.alive and host is began[name]}
        there -= system.circumstances.blind
        plenty = self.log.slices >= 2 * len(NODES)
        return [f"{name} has got no slice" for name in sorted(there - used)] if plenty else []

    def _find_late(self) -> list[str]:
        """Slices that can be read, and of which nothing was stored for too long."""
        system, before = self.system, self.system.clock.now - LATE
        return [
            f"slice {slice_} is stored up to {marker} only, and has had {self.log.end(slice_, before)} for {LATE:g} s"
            for slice_, marker in enumerate(system.dataset.markers)
            if slice_ not in system.circumstances.unreadable and marker < self.log.end(slice_, before)
        ]


def _limits(random: Random) -> SliceLimits:
    return SliceLimits(
        settling_seconds=random.choice([0.5, 2.0]),
        grace_seconds=random.choice([0.2, 2.0]),
        silent_seconds=random.choice([3.0, 6.0]),
        stuck_seconds=random.choice([3.0, 5.0]),
        longest_stuck_seconds=5.0,
        prepare_seconds=random.choice([0.5, 3.0]),
        release_seconds=random.choice([0.3, 3.0]),
        sessions=random.choice([1, 4]),
        session_slices=random.choice([1, 3, 32]),
        round_seconds=0.5,
        longest_relapse_seconds=2.0,
        batch_seconds=0.0,
        retry_seconds=random.choice([0.1, 1.0]),
        uncommitted=random.choice([1, 2, 4]),
    )


def _circumstances(random: Random) -> Circumstances:
    return Circumstances(
        store_seconds=random.choice([0.001, 0.05, 0.5]),
        store_fails=random.choice([0.0, 0.0, 0.1]),
        decide_seconds=random.choice([0.0, 0.3]),
        prepare_seconds=random.choice([0.01, 0.3]),
        prepare_fails=random.choice([0.0, 0.3]),
        processing_fails=random.choice([0.0, 0.1]),
        gauge_seconds=0.5,
        doubled=random.choice([0.0, 0.05, 0.3]),
    )


def _conditions(random: Random) -> Conditions:
    return Conditions(
        latency=random.choice([0.001, 0.02, 0.2]),
        spread=random.choice([0.1, 1.0]),
        loss=random.choice([0.0, 0.05]),
        breaks=random.choice([0.0, 0.0, 0.002]),
        notice=random.choice([0.5, 5.0]),
    )


def _eager() -> Thresholds:
    return Thresholds(alpha=0.05, gamma=0.5, cool_down=0.7, settle=1.0, stale_after=5.0, chance=0.0, target=None)
