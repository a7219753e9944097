"""Detection: whether a broker or a cluster is overloaded or has more than a neighbour, and what could be done then.

A cluster-head runs the same on the averages of its edges, with other triggers; it has no ratios of CPU and memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple

from tocsin.overlay.load import Metric, Metrics, Resource
from tocsin.overlay.tuning import Trigger, Tuning


class Availability(Enum):
    """Whether a broker, or a cluster, is available for balancing."""

    OK = "OK"
    BUSY = "BUSY"
    OVERLOADED = "N/A"
    STABILIZING = "STABILIZING"


class Algorithm(Enum):
    """How the subscribers to offload are chosen."""

    INPUT = "input"
    MATCH = "match"
    OUTPUT = "output"


class Neighbour(NamedTuple):
    """Another broker or cluster, as its last load message told it."""

    name: str
    availability: Availability
    metrics: Metrics


class OffloadAction(NamedTuple):
    """Something to try: to whom, by which algorithm, and by how much there is more here.

    ``overloaded`` is set when it is to relieve an overload, not to make loads even.
    """

    acceptor: str
    algorithm: Algorithm
    difference: float
    overloaded: bool = False


class Stabilisation:
    """How long a broker is STABILIZING after a session: for a while, and then until its metrics have come to rest."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._until: float | None = None
        self._last: Metrics | None = None

    @property
    def active(self) -> bool:
        """Whether it lasts."""
        return self._until is not None

    def begin(self, now: float) -> None:
        """A session has ended."""
        self._until, self._last = now + self._tuning.stabilize_seconds, None

    def observe(self, now: float, metrics: Metrics) -> None:
        """The detection runs, and these are the metrics."""
        if self._until is None:
            return
        if now >= self._until and self._last is not None and self._rests(metrics, self._last):
            self._until = None
        self._last = metrics

    def _rests(self, metrics: Metrics, last: Metrics) -> bool:
        changed = metrics.largest_difference(last, self._tuning.normal_delay)
        return changed <= self._tuning.stabilize_difference


class Attempts:
    """With whom a session was in vain: the one with more has found nobody whose going would make a difference smaller.

    Such a difference has to be lived with, since making output ratios even must not make input ratios uneven. It counts
    as long as neither of the two has become another.
    """

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._sent: dict[str, tuple[Metrics, Metrics]] = {}
        self._got: dict[str, tuple[Metrics, Metrics]] = {}

    def send_nobody(self, metrics: Metrics, other: Neighbour) -> None:
        """This broker, being like that, has found nobody to send to the other one."""
        self._sent[other.name] = metrics, other.metrics

    def get_nobody(self, metrics: Metrics, other: Neighbour) -> None:
        """The other one has found nobody to send here."""
        self._got[other.name] = metrics, other.metrics

    def sent_nobody(self, metrics: Metrics, other: Neighbour) -> bool:
        """Whether it has, and both are as they were."""
        return self._is_unchanged(self._sent, metrics, other)

    def got_nobody(self, metrics: Metrics, other: Neighbour) -> bool:
        """Whether the other one has, and both are as they were."""
        return self._is_unchanged(self._got, metrics, other)

    def _is_unchanged(self, known: dict[str, tuple[Metrics, Metrics]], metrics: Metrics, other: Neighbour) -> bool:
        if other.name not in known:
            return False
        normal = self._tuning.normal_delay
        before, theirs = known[other.name]
        changed = max(metrics.largest_difference(before, normal), other.metrics.largest_difference(theirs, normal))
        if changed <= self._tuning.stabilize_difference:
            return True
        del known[other.name]
        return False


def availability(overloaded: bool, busy: bool, stabilising: bool) -> Availability:
    """The state that follows from the facts; ``overloaded`` means that a ratio exceeds the lower threshold."""
    if busy:
        return Availability.BUSY
    if overloaded:
        return Availability.OVERLOADED
    return Availability.STABILIZING if stabilising else Availability.OK


_RELIEF: Final = {
    Resource.INPUT: (Algorithm.MATCH, Metric.INPUT),
    Resource.CPU: (Algorithm.MATCH, Metric.INPUT),
    Resource.MEMORY: (Algorithm.MATCH, Metric.DELAY),
    Resource.OUTPUT: (Algorithm.OUTPUT, Metric.OUTPUT),
}
"""What relieves a resource, and the metric by which acceptors are compared: load messages have no CPU and memory."""

_LEVELLING: Final = {
    Metric.INPUT: Algorithm.INPUT,
    Metric.DELAY: Algorithm.MATCH,
    Metric.OUTPUT: Algorithm.OUTPUT,
}


def detect(
    metrics: Metrics,
    ratios: dict[Resource, float],
    state: Availability,
    neighbours: Iterable[Neighbour],
    tuning: Tuning,
    trigger: Trigger,
) -> list[OffloadAction]:
    """What could be done, the largest difference first; nothing, if all is well or the state does not allow it."""
    available = [each for each in neighbours if each.availability is Availability.OK]
    if state is Availability.BUSY:
        return []
    if resources := tuning.overloaded_resources(ratios):
        actions = _relieve(metrics, resources, available, tuning)
    elif state is Availability.OK:
        actions = _level(metrics, available, tuning, trigger)
    else:
        return []
    return sorted(actions, key=lambda action: -action.difference)


def balanced_with(
    metrics: Metrics,
    neighbours: Iterable[Neighbour],
    tuning: Tuning,
    trigger: Trigger,
    attempts: Attempts,
) -> list[str]:
    """The neighbours that differ by no trigger, or by one of which nothing can be done: the balanced set of a load
    message."""
    return [each.name for each in neighbours if _even(metrics, each, tuning, trigger, attempts)]


def _relieve(
    metrics: Metrics, resources: list[Resource], available: list[Neighbour], tuning: Tuning
) -> Iterator[OffloadAction]:
    for neighbour in available:
        most: dict[Algorithm, float] = {}
        for resource in resources:
            algorithm, metric = _RELIEF[resource]
            difference = metrics.difference(metric, neighbour.metrics, tuning.normal_delay)
            most[algorithm] = max(difference, most.get(algorithm, difference))
        for algorithm, difference in most.items():
            yield OffloadAction(neighbour.name, algorithm, difference, overloaded=True)


def _level(metrics: Metrics, available: list[Neighbour], tuning: Tuning, trigger: Trigger) -> Iterator[OffloadAction]:
    for neighbour in available:
        for metric, algorithm in _LEVELLING.items():
            difference = metrics.difference(metric, neighbour.metrics, tuning.normal_delay)
            if difference > trigger.of(metric):
                yield OffloadAction(neighbour.name, algorithm, difference)


def _even(metrics: Metrics, other: Neighbour, tuning: Tuning, trigger: Trigger, attempts: Attempts) -> bool:
    for metric in Metric:
        difference = metrics.difference(metric, other.metrics, tuning.normal_delay)
        if difference > trigger.of(metric) and not attempts.sent_nobody(metrics, other):
            return False
        if -difference > trigger.of(metric) and not attempts.got_nobody(metrics, other):
            return False
    return True
