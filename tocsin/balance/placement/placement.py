"""The interface of placement, the first stage: which broker a subscriber that has just come is given.

The coordinator asks once per newcomer, which has as a rule no subscriptions yet, so that most policies know nothing of
what it will weigh.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tocsin.balance.model.loads import Loads, any_load
from tocsin.balance.model.problem import MoveRules
from tocsin.balance.model.workload import Bools, Floats, Int32s, Int64s
from tocsin.errors import UnavailableError


@dataclass(frozen=True, eq=False)
class View:
    """What a placement sees of the brokers.

    Args:
        loads: F of each broker times its weight, so its utilisation where capacities differ.
        weights: 1 ÷ capacity of each broker, or 1.
        open: which brokers receive newcomers: those that are neither draining nor pinned.
        locations: x and y of each broker, if known.
        rates: λ of each BE subscription.
        held: how many subscribers hold BE subscription k on broker j, at ``held[k, j]``.
        population: how many subscribers each broker has, but for those who are suspended.
        idle: how many of them have no load yet: they hold nothing, or nothing of which a rate was measured.
    """

    loads: Floats
    weights: Floats
    open: Bools
    locations: Floats | None
    rates: Int64s
    held: Int32s
    population: Int64s
    idle: Int64s

    @classmethod
    def of(cls, loads: Loads, rules: MoveRules | None = None) -> View:
        """The brokers as they are now; the view shows later moves too in what they hold, but not in their loads."""
        workload, assignment = loads.workload, loads.assignment
        loaded = any_load(workload.rates, workload.indptr[:-1], np.diff(workload.indptr).astype(np.int32), workload.idx)
        return cls(
            loads=loads.utilisation,
            weights=workload.weights,
            open=(rules or MoveRules()).refuges(workload.brokers),
            locations=workload.broker_locations,
            rates=workload.rates,
            held=loads.held,
            population=np.bincount(assignment, minlength=workload.brokers),
            idle=np.bincount(assignment[~loaded], minlength=workload.brokers),
        )

    def choices(self) -> Int64s:
        """The brokers that are open, in their order; there is at least one, or it is an UnavailableError."""
        brokers = np.flatnonzero(self.open)
        if not len(brokers):
            raise UnavailableError("no broker takes newcomers: all are draining or pinned; add one or release one")
        return brokers

    def loads_after(self, newcomer: Newcomer, brokers: Int64s) -> Floats:
        """The loads of these brokers if each had the newcomer: its own load, and what the broker does not hold yet."""
        wanted = newcomer.subscriptions
        rates = self.rates[wanted]
        fresh = self.held[np.ix_(wanted, brokers)] == 0
        return np.asarray(self.loads[brokers] + (rates.sum() + rates @ fresh) * self.weights[brokers])

    def expected_loads(self, newcomer: Newcomer, brokers: Int64s) -> Floats:
        """As :meth:`loads_after`, once those who have no load yet have what others have on average."""
        to_come = self.idle[brokers] + (not self.rates[newcomer.subscriptions].any())
        return np.asarray(self.loads_after(newcomer, brokers) + self._typical * to_come * self.weights[brokers])

    @property
    def _typical(self) -> float:
        """What somebody who has a load adds on average; when nobody has any, all that counts is how many there are."""
        others = int((self.population - self.idle).sum())
        return float((self.loads / self.weights).sum() / others) if others else 1.0


@dataclass(frozen=True, eq=False)
class Newcomer:
    """A subscriber to be placed.

    Args:
        location: its x and y, if known.
        subscriptions: its BE subscriptions, as far as they are known.
    """

    location: tuple[float, float] | None = None
    subscriptions: Int32s = field(default_factory=lambda: np.empty(0, np.int32))


class Placement(Protocol):
    """Chooses a broker for each newcomer."""

    @property
    def name(self) -> str:
        """What it is called in settings and on the command line."""

    def place(self, view: View, newcomer: Newcomer) -> int:
        """An open broker; if there is none, it is an UnavailableError."""
