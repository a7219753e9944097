"""The network that the demo runs on: one broker in the middle of the city, and the others at its eastern edge.

Everyone is placed on the nearest broker, so that the one in the middle begins with far more than its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from tocsin.apps.emergency.ground import Ground
from tocsin.local.cluster import ClusterNetwork
from tocsin.local.infrastructure import Infrastructure
from tocsin.local.network import LocalNetwork
from tocsin.settings import Settings

# In parts of the city's width and height.
LOCATIONS: Final = {
    "centre": (0.50, 0.50),
    "east": (0.93, 0.50),
    "south-east": (0.80, 0.26),
    "north-east": (0.89, 0.88),
    "harbour": (0.93, 0.09),
}
# All of it happens in minutes here, where operators would think in hours.
_COORDINATOR: Final = {
    "coordinator.placement": "nearest",
    "coordinator.interval_seconds": 3,
    "coordinator.cool_down_seconds": 10,
    "coordinator.settle_seconds": 20,
}
_DATA: Final = {"rates.window_seconds": 20}
_BROKER: Final = {"broker.rate_seconds": 20, "broker.report_seconds": 1, "broker.publish_seconds": 0.25}


def network(settings: Settings, directory: Path, brokers: int, options: list[str], land: Ground) -> LocalNetwork:
    """A network on free ports, with so many brokers, in a city."""
    own = _of_brokers(brokers, land)
    return LocalNetwork(_anywhere(settings), directory, brokers, options, _DATA, _COORDINATOR, own)


def cluster(
    infrastructure: Infrastructure, directory: Path, brokers: int, nodes: int, options: list[str], land: Ground
) -> ClusterNetwork:
    """The same on hosts, with processing nodes."""
    own, data = _of_brokers(brokers, land), {**_DATA, "nodes.round_seconds": 3}
    # Who stands by must have a core when it takes over.
    spark = {"spark.cores.max": "1"}
    return ClusterNetwork(infrastructure, directory, brokers, options, data, _COORDINATOR, own, spark, nodes)


def whereabouts(brokers: Sequence[str]) -> dict[str, str]:
    """Where each broker is, in words."""
    words = list(LOCATIONS)
    return {name: words[number % len(words)] for number, name in enumerate(brokers)}


def _of_brokers(brokers: int, land: Ground) -> list[dict[str, object]]:
    (west, south), (east, north) = land.low, land.high
    locations = [(west + x * (east - west), south + y * (north - south)) for x, y in LOCATIONS.values()]
    return [{**_BROKER, "broker.location": list(locations[number % len(locations)])} for number in range(brokers)]


def _anywhere(settings: Settings) -> Settings:
    """The settings, but for ports: any that are free, so that the demo runs beside whatever there is."""
    sections = {name: getattr(settings, name) for name in ("data", "coordinator", "broker")}
    return msgspec.structs.replace(
        settings,
        **{name: msgspec.structs.replace(section, host="127.0.0.1", port=0) for name, section in sections.items()},
    )
