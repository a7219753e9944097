"""The test bed of one run: its processes, and the settings by which they place and balance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tocsin.apps.emergency import APPLICATION
from tocsin.apps.emergency.city import HEIGHT, WIDTH
from tocsin.broker.limits import BrokerLimits
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.experiment.schemes import Scheme
from tocsin.local.network import LocalNetwork
from tocsin.settings import Settings

PLACEMENTS: Final = {"RND": "random", "RR": "round-robin", "NR": "nearest", "LL": "least-loaded"}

# One broker in the middle of the city, four at its corners, then along its edges: the nearest is mostly the first.
LOCATIONS: Final = ((0.5, 0.5), (0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.0), (0.5, 1.0), (0.0, 0.5))
_PERIOD: Final = re.compile(r"\bPERIOD (\d+) SECONDS\b")


@dataclass(frozen=True)
class Bed:
    """What runs. ``speed``: how many seconds of the paper's pass in a second; all periods and waits are divided.

    ``low`` and ``high`` are the corners of the city that the brokers are placed in.
    """

    placement: str
    scheme: Scheme
    brokers: int
    speed: float
    low: tuple[float, float] = (0.0, 0.0)
    high: tuple[float, float] = (WIDTH, HEIGHT)

    def network(self, directory: Path) -> LocalNetwork:
        """The processes, on free ports, with their state in a directory."""
        return LocalNetwork(
            free_ports(),
            directory,
            self.brokers,
            of_data={"rates.window_seconds": Settings().rates.window_seconds / self.speed},
            of_coordinator=self.of_coordinator(),
            of_brokers=[self._of_broker(number) for number in range(self.brokers)],
        )

    def of_coordinator(self) -> Mapping[str, object]:
        """How the coordinator places and balances."""
        settings: dict[str, object] = {
            "coordinator.placement": PLACEMENTS[self.placement],
            "coordinator.interval_seconds": CoordinatorLimits().interval / self.speed,
            "coordinator.presence_seconds": CoordinatorLimits().presence / self.speed,
            "coordinator.migration": self.scheme.migration,
            "coordinator.shuffle": self.scheme.shuffle,
        }
        thresholds = self.scheme.thresholds
        if thresholds is None:
            return settings
        return settings | {
            "coordinator.alpha": thresholds.alpha,
            "coordinator.beta": thresholds.beta * self.speed,
            "coordinator.gamma": thresholds.gamma,
            "coordinator.theta": thresholds.theta * self.speed,
            "coordinator.shuffle_gain": thresholds.shuffle_gain,
            "coordinator.max_over_mean": thresholds.max_over_mean or 0,
            "coordinator.chance": thresholds.chance,
            "coordinator.target": thresholds.target or 0,
            "coordinator.min_improvement": thresholds.min_improvement,
            "coordinator.cool_down_seconds": thresholds.cool_down / self.speed,
            "coordinator.settle_seconds": thresholds.settle / self.speed,
        }

    def application(self) -> bytes:
        """The emergency application, its channels running as much more often as time passes faster."""
        text = APPLICATION.read_text(encoding="utf-8")
        return _PERIOD.sub(lambda found: f"PERIOD {self._milliseconds(found[1])} MILLISECONDS", text).encode()

    def _milliseconds(self, seconds: str) -> int:
        return round(int(seconds) * 1000 / self.speed)

    def _of_broker(self, number: int) -> Mapping[str, object]:
        limits = BrokerLimits()
        location = LOCATIONS[number % len(LOCATIONS)]
        return {
            "broker.location": [a + part * (b - a) for part, a, b in zip(location, self.low, self.high, strict=True)],
            "broker.report_seconds": limits.report_seconds / self.speed,
            "broker.rate_seconds": limits.rate_seconds / self.speed,
            "broker.linger_seconds": limits.linger_seconds / self.speed,
        }


def free_ports() -> Settings:
    """The default settings, with any free ports."""
    settings = Settings()
    return replace(
        settings,
        data=replace(settings.data, port=0),
        coordinator=replace(settings.coordinator, port=0),
        broker=replace(settings.broker, port=0),
    )
