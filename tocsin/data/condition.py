"""How the data cluster is, as operators are told: what fails, and what brokers knew that these data do not have."""

from __future__ import annotations

import time
from typing import Any

from tocsin.data.catalog import Catalog
from tocsin.data.control.core import Position
from tocsin.data.live_channels import LiveChannel
from tocsin.log import get_logger
from tocsin.model.histories import DROPPED, Cursor, common_execution, knows
from tocsin.model.messages import ChannelHealth, Health
from tocsin.model.slices import NodesNeeded

log = get_logger(__name__)


class Condition:
    """From the start of the process on. ``problem`` is why it cannot work at all, or empty."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self.problem = ""
        # Sentences for operators, by channel.
        self._setbacks: dict[str, str] = {}

    def compare(self, broker: str, channel: str, known: Cursor, position: Position | None) -> None:
        """Notes if a broker knew more of a channel than there is now."""
        history = position.history if position else []
        common = common_execution(history, known.incarnation)
        if not DROPPED < common < known.execution:
            return
        here = f"has only those up to {common}" if knows(history, known.incarnation) else "has never counted so"
        setback = (
            f"channel {channel}: broker {broker} knew execution {known.execution}, and this directory {here}: it is an "
            "older copy of the data, or another directory"
        )
        if channel not in self._setbacks:
            log.warning("the data are not those of before", channel=channel, broker=broker, reason=setback)
        self._setbacks[channel] = setback

    def forget(self, channel: str) -> None:
        """A channel is no more, and nobody misses anything of it."""
        self._setbacks.pop(channel, None)

    def report(self, catalog: Catalog, *, begun: bool, needed: NodesNeeded | None = None) -> Health:
        """How everything is; it has ``begun`` once Spark is there, or is known not to come."""
        feeds = [pipeline.health() for pipeline in list(catalog.pipelines.values())]
        channels = [_channel_health(catalog, live) for live in catalog.live]
        problems = [self.problem] if self.problem else []
        problems += [feed.error for feed in feeds if feed.error]
        problems += [damage for table in catalog.all_tables() if (damage := table.damage)]
        problems += [f"channel {c.name}: {c.error}" for c in channels if c.error]
        ready = begun and not self.problem
        return Health(
            status="degraded" if problems else "ok" if ready else "starting",
            problems=problems,
            uptime_seconds=round(time.monotonic() - self._started, 3),
            spark=ready,
            feeds=feeds,
            channels=channels,
            details=self._details(needed),
        )

    def _details(self, needed: NodesNeeded | None) -> dict[str, Any]:
        """What is no problem, and of interest: what brokers have lost, and whether there are enough nodes."""
        found: dict[str, Any] = {"setbacks": list(self._setbacks.values())} if self._setbacks else {}
        return {**found, "nodes": needed} if needed else found


def _channel_health(catalog: Catalog, live: LiveChannel) -> ChannelHealth:
    name = live.definition.name
    status = catalog.live.status(name)
    return ChannelHealth(name, status.state, live.results.execution, status.error)
