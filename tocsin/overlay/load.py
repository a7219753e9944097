"""What a broker says of its load, and what it would be after a change.

I_r, the input utilisation ratio, is the rate of incoming publications over the maximum match rate, which is the inverse
of the matching delay; O_r is the output bandwidth in use over all of it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import msgspec


class Resource(Enum):
    """What can be overloaded."""

    INPUT = "input"
    OUTPUT = "output"
    CPU = "cpu"
    MEMORY = "memory"


class Metric(Enum):
    """What is made even between brokers."""

    INPUT = "input"
    DELAY = "delay"
    OUTPUT = "output"


class Metrics(NamedTuple):
    """The three performance metrics: two utilisation ratios, and the average matching delay in seconds."""

    input: float
    output: float
    delay: float

    def difference(self, metric: Metric, other: Metrics, normal: float) -> float:
        """By how much this is more than the other. Equation 1 for the delay, with N_f for ``normal``; signed."""
        match metric:
            case Metric.INPUT:
                return self.input - other.input
            case Metric.OUTPUT:
                return self.output - other.output
            case Metric.DELAY:
                return (self.delay - other.delay) / normal

    def largest_difference(self, other: Metrics, normal: float) -> float:
        """The largest of the three differences, whoever has more."""
        return max(abs(self.difference(metric, other, normal)) for metric in Metric)


def average(metrics: list[Metrics]) -> Metrics:
    """Of a cluster's edges; there must be one."""
    inputs, outputs, delays = zip(*metrics, strict=True)
    return Metrics(sum(inputs) / len(metrics), sum(outputs) / len(metrics), sum(delays) / len(metrics))


class BrokerLoad(msgspec.Struct, frozen=True):
    """All that is known of a broker's load, as it tells the other broker of a session.

    Args:
        incoming: publications per second.
        matching_seconds: the average matching delay; of a broker without subscriptions, the one that it has with one.
        outgoing: bytes per second that it sends.
        bandwidth: bytes per second that it could send.
        subscriptions: n, one for each subscriber.
        cpu: the part of the processor in use.
        memory: the bytes in use.
        memory_bytes: the bytes that there are.
        subscription_bytes: what one more subscription takes.
    """

    incoming: float
    matching_seconds: float
    outgoing: float
    bandwidth: float
    subscriptions: int
    cpu: float = 0.0
    memory: float = 0.0
    memory_bytes: float = 1.0
    subscription_bytes: float = 0.0

    @property
    def input_ratio(self) -> float:
        """I_r."""
        return self.incoming * self.matching_seconds

    @property
    def output_ratio(self) -> float:
        """O_r."""
        return self.outgoing / self.bandwidth

    @property
    def metrics(self) -> Metrics:
        """What is compared with other brokers."""
        return Metrics(self.input_ratio, self.output_ratio, self.matching_seconds)

    @property
    def ratios(self) -> dict[Resource, float]:
        """What is compared with the overload thresholds."""
        return {
            Resource.INPUT: self.input_ratio,
            Resource.OUTPUT: self.output_ratio,
            Resource.CPU: self.cpu,
            Resource.MEMORY: self.memory / self.memory_bytes,
        }

    def change(self, incoming: float, outgoing: float, subscriptions: int) -> BrokerLoad:
        """The load as estimated with so much more, or less, of each. Equation 4 for the matching delay.

        The processor does as much more as the matching engine; what else it does stays.
        """
        counted = max(1, self.subscriptions)
        delay = self.matching_seconds * max(1, self.subscriptions + subscriptions) / counted
        rate = max(0.0, self.incoming + incoming)
        busier = min(1.0, rate * delay) - min(1.0, self.input_ratio)
        return BrokerLoad(
            rate,
            delay,
            max(0.0, self.outgoing + outgoing),
            self.bandwidth,
            self.subscriptions + subscriptions,
            max(0.0, self.cpu + busier),
            max(0.0, self.memory + subscriptions * self.subscription_bytes),
            self.memory_bytes,
            self.subscription_bytes,
        )
