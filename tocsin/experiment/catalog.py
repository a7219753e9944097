"""The experiments by their names. Nothing is imported before it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from tocsin.errors import InvalidError
from tocsin.experiment.study import Study

STUDIES = {
    "scale": "tocsin.experiment.scale.study:Scale",
    "simulation": "tocsin.experiment.simulation.study:Thousands",
    "latency": "tocsin.experiment.latency.study:Latency",
    "slices": "tocsin.experiment.slices.study:SharedSlices",
    "testbed": "tocsin.experiment.testbed.study:Prototype",
    "padres-local": "tocsin.experiment.padres.local.study:LocalBalancing",
    "padres-global": "tocsin.experiment.padres.clusters.study:GlobalBalancing",
    "padres-scale": "tocsin.experiment.padres.scale.study:PadresScale",
    "balancers": "tocsin.experiment.balancers.study:TwoBalancers",
}


def study(name: str, **settings: Any) -> Study:
    """An experiment by its name, with its fields set as given."""
    if name not in STUDIES:
        raise InvalidError(f"there is no experiment {name!r}; there are {', '.join(STUDIES)}")
    module, _, attribute = STUDIES[name].partition(":")
    return cast(Study, getattr(import_module(module), attribute)(**settings))
