"""One random schedule for the overlay: trouble for a while, then healing, then the verdict."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.messages import Control, Found, FromLink, Interrupted, Mark, Restored, Routed
from tocsin.overlay.tuning import Tuning
from tocsin.simulate.faults.schedule import ScheduleOutcome, make_trouble
from tocsin.simulate.faults.weather import CALM
from tocsin.simulate.network import Conditions
from tocsin.simulate.overlay.brokers import Power
from tocsin.simulate.overlay.clients import SubscriberHost
from tocsin.simulate.overlay.invariants import violations
from tocsin.simulate.overlay.system import POWERFUL, OverlaySystem

TREES: list[tuple[dict[str, str | None], dict[str, str]]] = [
    ({"h1": None}, {"a": "h1", "b": "h1", "c": "h1"}),
    ({"h1": None, "h2": "h1"}, {"a": "h1", "b": "h1", "c": "h2", "d": "h2"}),
    ({"h1": None, "h2": "h1", "h3": "h2"}, {"a": "h1", "b": "h1", "c": "h3", "d": "h3"}),
    ({"h1": None, "h2": "h1", "h3": "h1"}, {"a": "h1", "b": "h2", "c": "h2", "d": "h3"}),
]
FILTERS = (
    "kind = 'x'",
    "kind = 'x' and size > 3",
    "kind in ('x', 'y')",
    "size > 5",
    "size > 2",
    "kind = 'y' and size < 4",
    "kind exists",
    "kind = 'none'",
)
SUBSCRIBERS = 7
HEALING, ENDING, ARRIVING = 30.0, 30.0, 10.0
LATE = 3.0
PASSERS_BY: Final = 6
SOON: Final = 0.05
# An edge that has fewer publications than this on their way at a time takes longer to fetch what all have missed.
FEW: Final = 50
SLOWLY: Final = 60.0


class OverlaySchedule:
    """An overlay, and what happens to it: all of it follows from the seed."""

    def __init__(self, seed: int, show: Callable[[str], None] | None = None) -> None:
        self._seed, self._random = seed, Random(seed)
        random = self._random
        parents, edges = random.choice(TREES)
        self.system = OverlaySystem(
            parents,
            edges,
            random.getrandbits(32),
            replace(
                _more_limits(_limits(random), Random(f"{seed} limits")),
                linger_seconds=Random(f"{seed} lingering").choice([0.0, 0.3, 3.0]),
                at_once=Random(f"{seed} slices").choice([1, 200]),
            ),
            _conditions(random),
            random.choice([0.0, 0.05, 0.5]),
            random.choice([0.01, 0.5, 2.0]),
            _tuning(random),
            {name: _power(random) for name in edges},
            show=show,
        )
        self.system.on_subscriber = lambda host: setattr(host, "moving", self._on_the_way)
        self.moves, self._nasty = 0, random.random()
        self._pause = random.choice([0.05, 0.3])
        self._publishing, self._healed = True, False
        self._published, self._loses = count(1), random.random() < 0.3
        self._passed = count(1)
        self._brokers = [*parents, *edges]
        # A sequence of its own, so that what is doubled leaves the rest of a schedule as it is.
        self._doubling = Random(f"{seed} doubled")
        self._part_doubled = self._doubling.choice([0.0, 0.05, 0.3])
        self.system.doubled = self._draw_repeat_delay
        refusing = Random(f"{seed} refusing")
        self._refusing = set(refusing.sample(range(SUBSCRIBERS), refusing.choice([0, 0, 2, 4])))
        # And one for those who misbehave, or only pass by.
        self._others = Random(f"{seed} others")
        self._nuisance = self._others.choice([0.0, 0.5, 3.0])

    def run(self) -> ScheduleOutcome:
        """From the beginning to the verdict."""
        self._begin()
        faults = make_trouble(self._random, self._happen, self.system.advance)
        self._heal()
        system = self.system
        notes = sum(len(album.notes) for album in system.albums.values())
        trace = system.trace
        return ScheduleOutcome(
            self._seed, trace.fingerprint, trace.events, notes, self.moves, faults, violations(system)
        )

    def _draw_repeat_delay(self) -> float | None:
        """How much later a control message comes again, if it does."""
        if self._healed or self._doubling.random() >= self._part_doubled:
            return None
        return self._doubling.choice([0.0, 0.1, LATE]) * self._doubling.random()

    def _begin(self) -> None:
        for name in self.system.parents:
            self.system.start_publisher(f"p-{name}", name)
            self._publish(f"p-{name}")
        self.system.advance(self._random.choice([0.0, 1.0]))
        for number in range(SUBSCRIBERS):
            self._subscribe(number)
        if self._nuisance:
            self._disturb()
        self.system.advance(self._random.choice([0.0, 2.0]))

    def _disturb(self) -> None:
        """Somebody does something strange, again and again, which must not concern anybody else; who only passes by
        does so for longer, so that it is forgotten and comes again."""
        if self._publishing:
            strange = [self._pass_by] if self._healed else [self._insist, self._pass_by, self._pass_by, self._lie]
            self._others.choice(strange)()
            self.system.clock.after(self._others.expovariate(1 / self._nuisance), self._disturb)

    def _insist(self) -> None:
        host = self._others.choice(list(self.system.subscribers.values()))
        if host.alive:
            self.system.remark(f"{host.host} insists")
            host.insist(self._others.randrange(1, 6))

    def _pass_by(self) -> None:
        """A publisher comes, publishes a little and is gone once that is stored; it may come again."""
        number, heads = self._others.randrange(PASSERS_BY), list(self.system.parents)
        name = f"v{number}"
        self.system.start_publisher(name, heads[number % len(heads)])
        for _ in range(self._others.randrange(1, 4)):
            kind, size = self._others.choice("xyz"), self._others.randrange(8)
            self.system.publish(name, kind=kind, size=size, n=-next(self._passed))
        self.system.clock.after(self._others.uniform(0.5, 5.0), self._go_away, name)

    def _go_away(self, name: str) -> None:
        host = self.system.publishers[name]
        if host.alive and host.core.waiting:
            self.system.clock.after(1.0, self._go_away, name)
        elif host.alive:
            self.system.remark(f"{name} is gone")
            host.crash()

    def _lie(self) -> None:
        """An edge says what only a head may say."""
        edge = self._others.choice(list(self.system.edges.values()))
        head = self._others.choice(list(self.system.parents))
        lies: list[FromLink] = [
            Mark(head, 2**40),
            Routed(head, 2**40, f"p-{head}", 2**40, {"kind": "x", "size": 9, "n": 0}),
            Interrupted([head]),
            Restored([edge.host]),
            Control({"to": edge.host}, head, Found("1", head, "made up", {}, 2**40, 2**40, 2**40, [])),
        ]
        self.system.remark(f"{edge.host} lies")
        edge.lie(self._others.choice(lies))

    def _publish(self, name: str) -> None:
        """Publishes again and again."""
        if self._publishing:
            random = self._random
            self.system.publish(name, kind=random.choice("xyz"), size=random.randrange(8), n=next(self._published))
            self.system.clock.after(random.uniform(0.0, 2 * self._pause), self._publish, name)

    def _subscribe(self, number: int) -> None:
        where, edges = self._random.choice(FILTERS), self._edges()
        self.system.subscribe(f"s{number}", where, edges, refuses=number in self._refusing)

    def _edges(self) -> list[str]:
        return self._random.sample(list(self.system.clusters), len(self.system.clusters))

    def _happen(self) -> None:
        """One trouble."""
        random = self._random
        troubles: list[tuple[Callable[[], None], int]] = [
            (self._crash_broker, 4),
            (self._light_fuse, 3),
            (self._start_broker, 6),
            (self._cut, 2),
            (self._mend, 3),
            (self._break_link, 4),
            (self._break_publisher, 2),
            (self._crash_subscriber, 3),
            (self._start_subscribers, 4),
            (self._lose_disk, 2 * self._loses),
            (self._copy_disk, 2 * self._loses),
            (self._restore_disk, 2 * self._loses),
        ]
        chosen, _ = random.choices(troubles, [weight for _, weight in troubles])[0]
        chosen()

    def _on_the_way(self, host: SubscriberHost) -> None:
        """A subscriber has been told to move, which is when things had better not break."""
        self.moves += 1
        if self._healed or self._random.random() > self._nasty:
            return
        hits: list[Callable[[], None]] = [
            self._crash_broker,
            self._light_fuse,
            self._break_link,
            lambda: self.system.crash(host.host),
            lambda: self._break_links_of(host.host),
        ]
        hit = self._random.choice(hits)
        seconds = self._random.choice([0.0, 0.01, 0.1, 0.5])
        self.system.clock.after(seconds, lambda: None if self._healed else hit())

    def _break_links_of(self, name: str) -> None:
        for link in self.system.network.links(name):
            link.sever()

    def _hosts(self) -> list[Any]:
        return [*self.system.heads.values(), *self.system.edges.values()]

    def _crash_broker(self) -> None:
        self.system.crash(self._random.choice(self._brokers))

    def _light_fuse(self) -> None:
        host = self._random.choice([*self._hosts(), *self.system.subscribers.values()])
        host.fuse = self._random.randrange(12)

    def _start_broker(self) -> None:
        self._start(self._random.choice(self._brokers))

    def _start(self, name: str) -> None:
        if name in self.system.parents:
            self.system.start_head(name)
        else:
            self.system.start_edge(name)

    def _cut(self) -> None:
        one, two = self._random.sample([*self._brokers, *self.system.subscribers], 2)
        self.system.remark(f"{one} and {two} are cut off")
        self.system.network.sever(one, two)

    def _mend(self) -> None:
        self.system.network.mend_all()

    def _break_link(self) -> None:
        links = self.system.network.links(self._random.choice(self._brokers))
        if links:
            link = self._random.choice(links)
            self.system.remark(f"the link of {link.hosts} breaks")
            link.sever()

    def _break_publisher(self) -> None:
        """A publisher comes back to its head, which then dies with what it has not stored."""
        head = self._random.choice(list(self.system.parents))
        for link in self.system.network.links(f"p-{head}"):
            link.sever()
        self.system.clock.after(self._random.uniform(1.0, 2.0), self._crash_in_trouble, head)

    def _crash_in_trouble(self, name: str) -> None:
        if not self._healed:
            self.system.crash(name)

    def _lose_disk(self) -> None:
        self.system.lose_disk(self._random.choice(list(self.system.parents)))

    def _copy_disk(self) -> None:
        self.system.disks[self._random.choice(list(self.system.parents))].copy()

    def _restore_disk(self) -> None:
        self.system.restore_disk(self._random.choice(list(self.system.parents)))

    def _crash_subscriber(self) -> None:
        self.system.crash(self._random.choice(list(self.system.subscribers)))

    def _start_subscribers(self) -> None:
        for name in self.system.albums:
            if self._random.random() < 0.5:
                self.system.start_subscriber(name, self._edges())

    def _heal(self) -> None:
        """Everything is repaired, and there is time for all that was missed."""
        system, self._healed = self.system, True
        system.remark("everything heals")
        system.network.conditions = CALM
        system.network.mend_all()
        # Small pieces take many turns, in which publications must not be faster.
        system.pace = min(system.pace, SOON)
        for name in self._brokers:
            self._start(name)
        for broker in self._hosts():
            broker.pace = system.pace
        for host in [*self._hosts(), *system.subscribers.values()]:
            host.fuse = None
        for name in system.albums:
            system.start_subscriber(name, self._edges())
        for edge in system.edges.values():
            edge.leisure = 0.0
        system.advance(HEALING)
        # Nothing is much any more, so no session begins.
        for edge in system.edges.values():
            edge.power = POWERFUL
        system.advance(ENDING)
        self._publishing = False
        system.advance(ARRIVING)
        if system.limits.fetches * system.limits.fetch_publications < FEW:
            system.advance(SLOWLY)


def _limits(random: Random) -> OverlayLimits:
    return OverlayLimits(
        replay_publications=random.choice([20, 10_000, 10_000]),
        mark_seconds=random.choice([0.2, 2.0]),
        cursor_lag=random.choice([2, 20]),
        fetch_publications=random.choice([10, 50, 1000]),
        fetch_bytes=random.choice([2000, 262_144]),
        gather_seconds=random.choice([0.0, 0.1]),
        refetch_seconds=10.0,
        ask_bytes=random.choice([100, 262_144]),
        rate_seconds=random.choice([3.0, 10.0]),
        report_seconds=0.5,
        silent_seconds=3.0,
        detect_seconds=0.7,
        request_seconds=1.0,
        migration_seconds=random.choice([0.2, 1.0]),
        arriving_seconds=2.0,
        stayed_seconds=1000.0,
        grace_seconds=1.0,
        global_seconds=random.choice([4.0, 15.0]),
    )


def _more_limits(limits: OverlayLimits, random: Random) -> OverlayLimits:
    return msgspec.structs.replace(
        limits,
        fetches=random.choice([1, 2, 8]),
        answer_seconds=random.choice([1.0, 5.0]),
        publishers=random.choice([8, 100_000]),
        # Longer than any publisher is away that has something to send.
        publisher_seconds=15.0,
    )


def _tuning(random: Random) -> Tuning:
    return Tuning(
        stabilize_seconds=random.choice([0.5, 2.0]),
        stabilize_difference=0.5,
        samples=random.choice([5, 20]),
        sampling_seconds=random.choice([0.5, 2.0]),
        normal_delay=0.01,
    )


def _power(random: Random) -> Power:
    """A machine that is loaded by a few subscribers, or is not."""
    speed = random.choice([1.0, 1.0, 2.0, 10.0])
    return Power(0.005 / speed, 10_000.0 * speed)


def _conditions(random: Random) -> Conditions:
    return Conditions(
        latency=random.choice([0.001, 0.02, 0.2]),
        spread=random.choice([0.1, 1.0]),
        loss=random.choice([0.0, 0.05]),
        breaks=random.choice([0.0, 0.0, 0.002]),
        notice=random.choice([0.5, 5.0]),
    )
