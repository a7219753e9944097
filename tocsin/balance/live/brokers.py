"""What is known of brokers and subscribers besides their loads: capacities, how many are where, and locations."""

from __future__ import annotations

import math

import numpy as np

from tocsin.balance.live.numbering import Numbering, grow
from tocsin.balance.model.workload import Floats, Int32s, Int64s, Workload
from tocsin.errors import InvalidError

Location = tuple[float, float]
"""x and y, in any unit."""

_UNKNOWN: Location = (math.nan, math.nan)


class BrokerTable(Numbering):
    """The brokers, with what each can take and how many subscribers it has."""

    def __init__(self, workload: Workload, assignment: Int32s) -> None:
        super().__init__("broker", workload.brokers)
        self.capacity = np.ones(workload.brokers) if workload.capacity is None else workload.capacity.copy()
        self.population = np.bincount(assignment, minlength=workload.brokers).astype(np.int64)
        self.locations = Locations(workload.broker_locations, workload.brokers)
        self._uneven: bool | None = None

    def add(self, capacity: float, location: Location | None) -> int:
        """The number of a new and empty broker."""
        check_capacity(capacity)
        check_location(location)
        broker = self.take()
        self.capacity = grow(self.capacity, self.top)
        self.population = grow(self.population, self.top)
        self.capacity[broker] = capacity
        self._uneven = None
        self.locations.put(broker, location)
        return broker

    def resize(self, broker: int, capacity: float) -> None:
        """What a broker can take."""
        self.check(broker)
        check_capacity(capacity)
        self.capacity[broker] = capacity
        self._uneven = None

    def remove(self, broker: int) -> None:
        """Forgets a broker that nobody is on."""
        self.check(broker)
        if self.population[broker]:
            raise InvalidError(f"broker {broker} still has {self.population[broker]} subscribers; drain it first")
        self.release(broker)
        self._uneven = None

    def capacities(self) -> Floats | None:
        """Of all brokers; None where all are the same, since loads need not be divided then."""
        # Asked for every newcomer, and hardly ever another answer.
        if self._uneven is None:
            capacity = self.capacity[self.numbers()]
            self._uneven = not (capacity == capacity[:1]).all()
        return self.capacity[self.numbers()] if self._uneven else None


class Locations:
    """Where things are, as far as it is known."""

    def __init__(self, locations: Floats | None, number: int) -> None:
        self._locations = np.full((number, 2), math.nan) if locations is None else locations.copy()
        # Whether all of those that were last asked for are known.
        self._asked: Int64s | None = None
        self._known = False

    def put(self, number: int, location: Location | None) -> None:
        """Where something is; None: not known."""
        check_location(location)
        self._locations = grow(self._locations, number + 1)
        self._locations[number] = _UNKNOWN if location is None else location
        self._asked = None

    def upto(self, top: int, numbers: Int64s) -> Floats | None:
        """The locations of all numbers below ``top``, or None unless those of these are known. As long as they are the
        same numbers, they are to be the same array."""
        if self._asked is not numbers:
            self._asked, self._known = numbers, self.of(numbers) is not None
        return self._locations[:top] if self._known else None

    def of(self, numbers: Int64s) -> Floats | None:
        """The locations of these, or None unless all are known."""
        locations = self._locations[numbers]
        return None if np.isnan(locations).any() else locations


def check_capacity(capacity: float) -> None:
    """Refuses what cannot be a capacity."""
    if not (math.isfinite(capacity) and capacity > 0):
        raise InvalidError(f"a capacity of {capacity} is not possible; it must be a number above 0")


def check_location(location: Location | None) -> None:
    """Refuses what cannot be a location."""
    if location is not None and not all(map(math.isfinite, location)):
        raise InvalidError(f"{location} is not a location; give x and y, both of them numbers")
