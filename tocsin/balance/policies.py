"""The policies by their names, as settings and the command line know them.

A policy of one's own is a file and a line here, or a line at run time: ``PLANNERS["mine"] = "package.module:Class"``.
Nothing is imported before it is asked for.
"""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from typing import Any, cast

from tocsin.balance.placement.placement import Placement
from tocsin.balance.planners.planner import Planner
from tocsin.errors import InvalidError

PLANNERS = {
    "ldm": "tocsin.balance.planners.ldm:LDM",
    "sdm": "tocsin.balance.planners.sdm:SDM",
    "gsh": "tocsin.balance.planners.gsh:GSH",
    "multistage": "tocsin.balance.planners.multistage:Multistage",
    "shuffle": "tocsin.balance.planners.shuffle:Shuffle",
    "migrate": "tocsin.balance.planners.migrate:Migrate",
}

PLACEMENTS = {
    "nearest": "tocsin.balance.placement.paper:Nearest",
    "round-robin": "tocsin.balance.placement.paper:RoundRobin",
    "random": "tocsin.balance.placement.paper:Anywhere",
    "least-loaded": "tocsin.balance.placement.paper:LeastLoaded",
    "two-choices": "tocsin.balance.placement.twochoices:TwoChoices",
}

SHORT = {"nr": "nearest", "rr": "round-robin", "rnd": "random", "ll": "least-loaded"}
"""The paper's names of the placements."""


def planner(name: str, **settings: Any) -> Planner:
    """A planner by its name, with its fields set as given."""
    return cast(Planner, _make("planner", PLANNERS, name, settings))


def placement(name: str, **settings: Any) -> Placement:
    """A new placement by its name or the paper's short one, with its fields set as given."""
    return cast(Placement, _make("placement", PLACEMENTS, SHORT.get(name, name), settings))


def _make(kind: str, known: dict[str, str], name: str, settings: dict[str, Any]) -> object:
    if name not in known:
        raise InvalidError(f"there is no {kind} {name!r}; there are {', '.join(known)}")
    module, _, attribute = known[name].partition(":")
    made: type[Any] = getattr(import_module(module), attribute)
    allowed = [field.name for field in fields(made) if field.init]
    for setting in settings:
        if setting not in allowed:
            raise InvalidError(f"{kind} {name!r} has no {setting!r}; it has {', '.join(allowed) or 'no settings'}")
    return made(**settings)
