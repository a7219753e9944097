"""The part of a simulation that differs by level: how executions reach brokers, and how what they bring is weighed."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np

from tocsin.model import control
from tocsin.model.weight import weight
from tocsin.simulate.absences import Absences, Delivered
from tocsin.simulate.meters import KnownRates
from tocsin.simulate.queueing import OutgoingQueue
from tocsin.simulate.scenario import Scenario
from tocsin.simulate.shortcuts import CountedBroker, Shortcut
from tocsin.simulate.sizes import Sizes
from tocsin.simulate.system import System
from tocsin.simulate.weighing import note_size, notes


class DeliveryModel:
    """Brokers and channels of a scenario on a system. ``queues`` and the figures are in the order of the brokers."""

    def __init__(self, system: System, scenario: Scenario) -> None:
        self._system, self._scenario = system, scenario
        self.queues = [OutgoingQueue(broker.capacity) for broker in scenario.brokers]
        self.deliveries = 0
        self._brought, self._delivered = [0] * len(self.queues), [0] * len(self.queues)
        self._sizes = Sizes(len(scenario.lines.bytes))
        for backend, size in enumerate(scenario.lines.bytes):
            self.rate(backend, size)

    def begin(self) -> None:
        """Starts the brokers."""
        capacities = [broker.capacity for broker in self._scenario.brokers]
        mean = sum(each or 0 for each in capacities) / len(capacities)
        for number, broker in enumerate(self._scenario.brokers):
            capacity = broker.capacity / mean if broker.capacity else 1.0
            location = (broker.x, broker.y)
            self._system.start_broker(broker.name, capacity=capacity, location=location, **self._options(number))

    def rate(self, backend: int, size: float) -> None:
        """From now on executions find so much for a BE subscription."""
        cluster, channel = self._system.cluster, self._scenario.channels[self._scenario.lines.channel[backend]].name
        self._sizes.set(cluster.be(channel, {"line": backend}), cluster.execution.get(channel, 0) + 1, round(size))

    def execute(self, channel: int) -> None:
        """Runs a channel once."""
        raise NotImplementedError

    def since_last(self) -> tuple[list[int], list[int]]:
        """Bytes that came in and went out, per broker, since this was last asked."""
        figures = self._brought, self._delivered
        self._brought, self._delivered = [0] * len(self.queues), [0] * len(self.queues)
        return figures

    def _finds_anything(self, be: int) -> bool:
        """Whether executions find anything for a BE subscription."""
        return bool(self._sizes.now[be])

    def _options(self, broker: int) -> dict[str, Any]:
        """How a broker is started."""
        raise NotImplementedError

    def _sent(self, broker: int, size: int, deliveries: int) -> None:
        self._delivered[broker] += size
        self.deliveries += deliveries


class CountedDeliveries(DeliveryModel):
    """What an execution brings is accounted, not sent, and subscriptions are made in one go."""

    def __init__(self, system: System, scenario: Scenario) -> None:
        super().__init__(system, scenario)
        self._absences = Absences(system.cluster, self._sizes)
        self._told = KnownRates(system.cluster, len(scenario.lines.bytes))

    def begin(self) -> None:
        """Starts the brokers."""
        system = self._system
        system.at_once = Shortcut(system.brokers, lambda: system.coordinator).subscribe
        super().begin()

    def execute(self, channel: int) -> None:
        """Runs a channel once."""
        now, name, cluster = self._system.clock.now, self._scenario.channels[channel].name, self._system.cluster
        found = np.array(cluster.find(name, self._finds_anything), np.int64)
        weights = np.zeros(len(self._sizes.now), np.int64)
        weights[found] = weight(self._sizes.now[found])
        cluster.rates.add(now, name, found, weights[found])
        seconds = cluster.rates.due(now, name)
        for broker, described in enumerate(self._scenario.brokers):
            core = cast(CountedBroker, self._system.brokers[described.name].core)
            self._count(broker, now, core.count(now, name, cluster.execution[name], weights, seconds))

    def _options(self, broker: int) -> dict[str, Any]:
        return {
            "make": partial(
                CountedBroker, absences=self._absences, caught_up=partial(self._count, broker), told=self._told
            )
        }

    def _count(self, broker: int, now: float, delivered: Delivered) -> None:
        self._brought[broker] += delivered.incoming
        if delivered.deliveries:
            self._sent(broker, delivered.outgoing, delivered.deliveries)
            self.queues[broker].add(now, delivered.outgoing, delivered.deliveries)


class FrameDeliveries(DeliveryModel):
    """Every notification goes through the broker's core and the subscriber's."""

    def begin(self) -> None:
        """Starts the brokers, and weighs what passes them."""
        self._system.cluster.size = self._sizes.at
        super().begin()
        for number, broker in enumerate(self._scenario.brokers):
            host = self._system.brokers[broker.name]
            host.sent, host.pulled = partial(self._weigh, number), partial(self._pulled, number)

    def execute(self, channel: int) -> None:
        """Runs a channel once."""
        self._system.execute(self._scenario.channels[channel].name, self._finds_anything)

    def _options(self, broker: int) -> dict[str, Any]:
        return {"queue": self.queues[broker]}

    def _weigh(self, broker: int, now: float, frame: bytes) -> None:
        found = notes(frame)
        if found:
            self._sent(broker, sum(map(note_size, found)), len(found))
            # The frame has just been queued, so it leaves when all that waits has left.
            self.queues[broker].late(self.queues[broker].seconds(now), len(found))

    def _pulled(self, broker: int, now: float, results: control.Results) -> None:  # noqa: ARG002
        self._brought[broker] += sum(note_size(result) for result in results.results)
