"""What the controller sees of the system in one round."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.live.snapshot import WorkloadSnapshot
from tocsin.balance.live.workload import LiveWorkload
from tocsin.balance.model.plan import LoadFigures
from tocsin.balance.model.workload import Bools, Int64s
from tocsin.errors import InvalidError


@dataclass(frozen=True, eq=False)
class Observation:
    """The brokers' loads, and what operators want of them. All numbers are the live workload's.

    Args:
        brokers: all brokers, rising; the columns beside it are in this order.
        snapshot: gives the whole workload; called only when a planner is to be asked, since it takes a look at
            everything. Where decisions are made in a thread, take the snapshot before and give it from here.
        reported: when each broker's last load report came; who is missing has never reported.
        draining: brokers that must end empty.
        pinned: brokers that nobody leaves and nobody comes to.
        joining: new brokers that are to have their share.
        names: what brokers are called in sentences; who is missing is called by its number.
    """

    brokers: Int64s
    figures: LoadFigures
    population: Int64s
    snapshot: Callable[[], WorkloadSnapshot]
    reported: Mapping[int, float]
    draining: frozenset[int] = frozenset()
    pinned: frozenset[int] = frozenset()
    joining: frozenset[int] = frozenset()
    names: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if both := self.draining & (self.pinned | self.joining):
            raise InvalidError(
                f"broker {min(both)} is to drain, and also pinned or joining; it can only be one of them"
            )

    @classmethod
    def of(
        cls,
        live: LiveWorkload,
        reported: Mapping[int, float],
        draining: Iterable[int] = (),
        pinned: Iterable[int] = (),
        joining: Iterable[int] = (),
        names: Mapping[int, str] | None = None,
    ) -> Observation:
        """A live workload as it is now."""
        return cls(
            live.brokers,
            live.figures(),
            live.population,
            live.snapshot,
            reported,
            frozenset(draining),
            frozenset(pinned),
            frozenset(joining),
            names or {},
        )

    def in_words(self, brokers: Iterable[int]) -> str:
        """Brokers in a sentence."""
        names = [self.names.get(broker, str(broker)) for broker in sorted(brokers)]
        return f"broker{'s' if len(names) > 1 else ''} {', '.join(names)}"


@dataclass(frozen=True, eq=False)
class Standing:
    """An observation at one moment, with those set aside that have not reported lately.

    Args:
        stale: brokers that have not reported; nobody leaves them or comes to them, draining or not.
        stale_part: which part of all brokers that is.
        draining: brokers to be emptied that somebody is on.
        open: brokers that take part in balancing: they report, and neither drain nor are pinned.
        joining: those among them that are new and still have less than their share.
        figures: the loads of the open brokers alone; triggers go by them.
        each: how many subscribers an open broker has on average.
        in_words: gives brokers in a sentence.
    """

    stale: frozenset[int]
    stale_part: float
    draining: frozenset[int]
    open: frozenset[int]
    joining: frozenset[int]
    figures: LoadFigures
    each: float
    in_words: Callable[[Iterable[int]], str]

    @classmethod
    def of(cls, now: float, observed: Observation, thresholds: Thresholds) -> Standing:
        """How the brokers stand. A new broker has its share once its load is 1 − α of the mean."""
        brokers, reported, limit = observed.brokers.tolist(), observed.reported, thresholds.stale_after
        stale = frozenset(broker for broker in brokers if now - reported.get(broker, -math.inf) > limit)
        open_ = frozenset(brokers) - stale - observed.pinned - observed.draining
        which = np.array([broker in open_ for broker in brokers], np.bool_)
        figures = among(observed.figures, which)
        wanting = observed.brokers[observed.figures.loads < (1 - thresholds.alpha) * figures.mean].tolist()
        occupied = observed.brokers[observed.population > 0].tolist()
        return cls(
            stale=stale,
            stale_part=len(stale) / max(len(brokers), 1),
            draining=observed.draining.intersection(occupied) - stale,
            open=open_,
            joining=observed.joining.intersection(wanting) & open_,
            figures=figures,
            each=float(observed.population[which].mean()) if open_ else 0.0,
            in_words=observed.in_words,
        )


def among(figures: LoadFigures, brokers: Bools) -> LoadFigures:
    """The figures of some of the brokers."""
    return LoadFigures(figures.incoming[brokers], figures.outgoing[brokers], figures.loads[brokers])
