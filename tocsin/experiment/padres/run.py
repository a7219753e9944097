"""One run of a set-up on the shipped cores, with brokers that take their time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from msgspec.structs import replace

from tocsin.experiment.padres.recorder import Recorder
from tocsin.experiment.padres.scenario import (
    LOCAL_MEGAHERTZ,
    BrokerMachine,
    QuotePublication,
    QuoteScenario,
    QuoteSubscriber,
)
from tocsin.experiment.study import Tell
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.subscriber import Give, SubscriberAction
from tocsin.overlay.tuning import Tuning
from tocsin.simulate.network import Conditions
from tocsin.simulate.overlay.clients import SubscriberHost
from tocsin.simulate.overlay.service import ServiceTimes
from tocsin.simulate.overlay.system import OverlaySystem

FIRST_INPUT: Final = 0.5
"""The input ratio of edges that share all subscribers of the local set-up evenly and get all publications, at first.

The paper does not say how long matching takes on its machines. This makes it long enough for B1 to be overloaded while
subscribers join, and short enough for all edges together to bear it when publishers publish half as much again."""
LATENCY: Final = 0.002
"""Seconds on any link, one way."""
EVERY: Final = 10.0
"""Seconds between two rows."""


@dataclass(frozen=True)
class RunSettings:
    """How the brokers are set; ``balancing`` is whether they balance at all."""

    tuning: Tuning = field(default_factory=Tuning)
    limits: OverlayLimits = field(default_factory=OverlayLimits)
    balancing: bool = True


def matching_seconds(scenario: QuoteScenario) -> float:
    """What matching a publication against one subscription takes on a processor of 1 MHz."""
    rate = sum(publisher.rate for publisher in scenario.publishers)
    return FIRST_INPUT * LOCAL_MEGAHERTZ / (rate * len(scenario.subscribers))


def service_times(machine: BrokerMachine, matching: float) -> ServiceTimes:
    """What a broker's machine takes for what it does, if matching takes so long on one of 1 MHz."""
    return ServiceTimes(matching / machine.megahertz, machine.bandwidth, machine.memory_bytes)


class CountingSubscriber(SubscriberHost):
    """A subscriber's program for long runs: it keeps of what it was given only the number, and leaves no trace."""

    given = 0

    def tell(self, event: Any, data: bytes | str = b"") -> None:  # noqa: ARG002
        """Has the core handle an event."""
        if not self.alive:
            return
        actions = self.core.handle(self.world.clock.now, event)
        if len(actions) == 1 and type(actions[0]) is Give:
            # Nobody wants to be woken for what it has been given.
            self.given += 1
            return
        for action in actions:
            self.carry_out(action)
        self._arm()

    def carry_out(self, action: SubscriberAction) -> None:
        """Does what the core wants done."""
        if isinstance(action, Give):
            self.given += 1
        else:
            super().carry_out(action)


class QuoteRun:
    """A set-up on its way, under a name. Times are seconds from the beginning."""

    def __init__(self, name: str, scenario: QuoteScenario, seed: int, settings: RunSettings) -> None:
        self._scenario = scenario
        limits = settings.limits if settings.balancing else replace(settings.limits, detect_seconds=inf)
        matching = matching_seconds(scenario)
        self.system = OverlaySystem(
            {site.name: site.parent or None for site in scenario.heads},
            {site.name: site.head for site in scenario.edges},
            seed,
            limits,
            Conditions(latency=LATENCY, spread=0.0),
            store_seconds=0.0,
            tuning=settings.tuning,
            times={site.name: service_times(site.machine, matching) for site in scenario.brokers},
            programs=CountingSubscriber,
        )
        self._begun = self.system.clock.now
        self.recorder = Recorder(name, self.system, scenario, self._begun)

    def run(self, tell: Tell) -> Recorder:
        """From the beginning to the end."""
        scenario, clock = self._scenario, self.system.clock
        for publisher in scenario.publishers:
            self.system.start_publisher(publisher.name, scenario.published_to)
        self._join_next(iter(scenario.subscribers))
        self._publish_next(scenario.publications())
        self._watch()
        steps = int(scenario.seconds / EVERY)
        for step in range(1, steps + 1):
            clock.run(self._begun + step * EVERY)
            self.recorder.write(step * EVERY)
            tell(f"{step * EVERY:,.0f} of {scenario.seconds:,.0f} s", step / steps)
        return self.recorder

    def _join_next(self, left: Iterator[QuoteSubscriber]) -> None:
        if subscriber := next(left, None):
            self.system.clock.at(self._begun + subscriber.at, self._join, subscriber, left)

    def _join(self, subscriber: QuoteSubscriber, left: Iterator[QuoteSubscriber]) -> None:
        self.system.subscribe(subscriber.name, str(subscriber.filter), [subscriber.broker])
        self._join_next(left)

    def _publish_next(self, left: Iterator[QuotePublication]) -> None:
        if publication := next(left, None):
            self.system.clock.at(self._begun + publication.at, self._publish, publication, left)

    def _publish(self, publication: QuotePublication, left: Iterator[QuotePublication]) -> None:
        self.recorder.published(publication.publisher)
        self.system.publishers[publication.publisher].publish(publication.content)
        self._publish_next(left)

    def _watch(self) -> None:
        self.recorder.watch()
        self.system.clock.after(1.0, self._watch)
