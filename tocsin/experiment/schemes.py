"""The balancing schemes that experiments compare: which planners, and when they act."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from tocsin.balance.thresholds import Thresholds
from tocsin.errors import InvalidError
from tocsin.experiment.policies import known

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
SDM: Final = Scheme("SDM", "sdm")
GSH: Final = Scheme("GSH", "ldm", "gsh", replace(_PAPERS, alpha=_NEVER))
LDM_GSH: Final = Scheme("LDM+GSH", "ldm", "gsh", _PAPERS)
SDM_GSH: Final = Scheme("SDM+GSH", "sdm", "gsh", _PAPERS)
OURS: Final = Scheme("ours", "migrate", "shuffle", _OURS)
MIGRATE: Final = Scheme("migrate", "migrate", "shuffle", replace(_OURS, gamma=_NEVER))

BY_NAME: Final = {
    "none": NONE,
    "ldm": LDM,
    "sdm": SDM,
    "gsh": GSH,
    "ldm+gsh": LDM_GSH,
    "sdm+gsh": SDM_GSH,
    "ours": OURS,
    "migrate": MIGRATE,
}


def scheme(name: str) -> Scheme:
    """A scheme by its name; any other planner's name, or ``package.module:Class``, migrates with our thresholds."""
    if name in BY_NAME:
        return BY_NAME[name]
    try:
        planner = known(name)
    except InvalidError as error:
        raise InvalidError(f"{error}; the schemes are {', '.join(BY_NAME)}") from None
    return Scheme(planner, planner, "shuffle", _OURS)
