"""The part of a simulation that differs by level: how executions reach brokers, and how what they bring is weighed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from tocsin.broker.core import Broker
from tocsin.model import control
from tocsin.simulate.counted import CountedBroker
from tocsin.simulate.queueing import Queue
from tocsin.simulate.scenario import Scenario
from tocsin.simulate.system import System
from tocsin.simulate.weighing import note_size, notes


class Stage:
    """Brokers and channels of a scenario on a system. ``queues`` and the figures are in the order of the brokers."""

    make: Callable[..., Broker] = Broker

    def __init__(self, system: System, scenario: Scenario) -> None:
        self._system, self._scenario = system, scenario
        self.queues = [Queue(broker.capacity) for broker in scenario.brokers]
        self.deliveries = 0
        self._brought, self._delivered = [0] * len(self.queues), [0] * len(self.queues)
        self._sizes: list[dict[int, int]] = [{} for _ in scenario.channels]
        for line, size in enumerate(scenario.lines.bytes):
            self.rate(line, size)

    def begin(self) -> None:
        """Starts the brokers."""
        capacities = [broker.capacity for broker in self._scenario.brokers]
        mean = sum(each or 0 for each in capacities) / len(capacities)
        for broker in self._scenario.brokers:
            capacity = broker.capacity / mean if broker.capacity else 1.0
            place = (broker.x, broker.y)
            self._system.start_broker(broker.name, capacity=capacity, place=place, make=self.make)

    def rate(self, line: int, size: float) -> None:
        """From now on executions find so much for a line."""
        channel = self._scenario.lines.channel[line]
        be = self._system.cluster.be(self._scenario.channels[channel].name, {"line": line})
        self._sizes[channel][be] = round(size)

    def execute(self, channel: int) -> None:
        """Runs a channel once."""
        raise NotImplementedError

    def since_last(self) -> tuple[list[int], list[int]]:
        """Bytes that came in and went out, per broker, since this was last asked."""
        figures = self._brought, self._delivered
        self._brought, self._delivered = [0] * len(self.queues), [0] * len(self.queues)
        return figures

    def _sent(self, broker: int, now: float, size: int, deliveries: int) -> None:
        self._delivered[broker] += size
        self.deliveries += deliveries
        self.queues[broker].add(now, size, deliveries)


class CountedStage(Stage):
    """What an execution brings is accounted, not sent."""

    make = CountedBroker

    def execute(self, channel: int) -> None:
        """Runs a channel once."""
        now, name = self._system.clock.now, self._scenario.channels[channel].name
        number = self._system.cluster.execution[name] = self._system.cluster.execution.get(name, 0) + 1
        for broker, described in enumerate(self._scenario.brokers):
            core = cast(CountedBroker, self._system.brokers[described.name].core)
            incoming, outgoing, deliveries = core.count(now, name, number, self._sizes[channel])
            self._brought[broker] += incoming
            if deliveries:
                self._sent(broker, now, outgoing, deliveries)


class FrameStage(Stage):
    """Every notification goes through the broker's core and the subscriber's."""

    def begin(self) -> None:
        """Starts the brokers, and weighs what passes them."""
        self._system.cluster.size = self._size
        super().begin()
        for number, broker in enumerate(self._scenario.brokers):
            host = self._system.brokers[broker.name]
            host.sent, host.pulled = partial(self._weigh, number), partial(self._pulled, number)

    def execute(self, channel: int) -> None:
        """Runs a channel once."""
        sizes = self._sizes[channel]
        self._system.execute(self._scenario.channels[channel].name, lambda be: sizes.get(be, 0) > 0)

    def _size(self, be: int, execution: int) -> int:  # noqa: ARG002
        return next(sizes[be] for sizes in self._sizes if be in sizes)

    def _weigh(self, broker: int, now: float, frame: bytes) -> None:
        found = notes(frame)
        if found:
            self._sent(broker, now, sum(map(note_size, found)), len(found))

    def _pulled(self, broker: int, now: float, results: control.Results) -> None:  # noqa: ARG002
        self._brought[broker] += sum(note_size(result) for result in results.results)
