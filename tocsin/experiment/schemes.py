"""The balancing schemes that experiments compare: which planners, and when they act."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from tocsin.balance.control.thresholds import Thresholds
from tocsin.errors import InvalidError
from tocsin.experiment.policies import resolve_policy

# cov is never so high: it is at most the root of the number of brokers.
_NEVER: Final = 1e6

# β and θ belong to rates, and these to an experiment, which says above which load its schemes act.
_PAPERS: Final = replace(Thresholds.paper(), beta=0.0, theta=0.0)
_MIGRATING: Final = replace(_PAPERS, gamma=_NEVER)
_OURS: Final = Thresholds.product()


@dataclass(frozen=True)
class Scheme:
    """What balances a run. ``migration`` and ``shuffle`` are planners' names; without thresholds nothing is done."""

    title: str
    migration: str = "ldm"
    shuffle: str = "gsh"
    thresholds: Thresholds | None = _MIGRATING

    def at(self, title: str, **thresholds: Any) -> Scheme:
        """The same with other thresholds."""
        assert self.thresholds is not None
        return replace(self, title=title, thresholds=replace(self.thresholds, **thresholds))


NONE: Final = Scheme("no balancing", thresholds=None)
LDM: Final = Scheme("LDM", "ldm")
LDM_FINE: Final = LDM.at("LDM α=0.05", alpha=0.05)
SDM: Final = Scheme("SDM", "sdm")
GSH: Final = Scheme("GSH", "ldm", "gsh", replace(_PAPERS, alpha=_NEVER))
LDM_GSH: Final = Scheme("LDM+GSH", "ldm", "gsh", _PAPERS)
SDM_GSH: Final = Scheme("SDM+GSH", "sdm", "gsh", _PAPERS)
OURS: Final = Scheme("ours", "migrate", "shuffle", _OURS)
MIGRATE: Final = Scheme("migrate", "migrate", "shuffle", replace(_OURS, gamma=_NEVER))
_OF_THE_PAPER: Final = (LDM, LDM_FINE, SDM, GSH, LDM_GSH, SDM_GSH)

BY_NAME: Final = {
    "none": NONE,
    "ldm": LDM,
    "ldm-fine": LDM_FINE,
    "sdm": SDM,
    "gsh": GSH,
    "ldm+gsh": LDM_GSH,
    "sdm+gsh": SDM_GSH,
    "ours": OURS,
    "migrate": MIGRATE,
}


def above(one: Scheme, load: float) -> Scheme:
    """The same scheme, acting only when the mean load is above this: β and θ, bytes per second.

    One level for both: if β were lower, migrations would have levelled the loads before a shuffle was thought of.
    """
    return one if one.thresholds is None else one.at(one.title, beta=load, theta=load)


def papers_above(one: Scheme, load: float) -> Scheme:
    """The same for the paper's schemes; others act as they do in the product, which knows no such level."""
    return above(one, load) if one in _OF_THE_PAPER else one


def scheme(name: str) -> Scheme:
    """A scheme by its name; any other planner's name, or ``package.module:Class``, migrates with our thresholds."""
    if name in BY_NAME:
        return BY_NAME[name]
    try:
        planner = resolve_policy(name)
    except InvalidError as error:
        raise InvalidError(f"{error}; the schemes are {', '.join(BY_NAME)}") from None
    return Scheme(planner, planner, "shuffle", _OURS)
