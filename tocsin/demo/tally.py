"""What happened in the demo, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Channel:
    """How a channel has run since the demo began."""

    name: str
    period: float
    first: int
    """The number of its last execution before the demo."""
    execution: int
    seconds: list[float] = field(default_factory=list)
    """How long each execution took that was seen."""

    @property
    def executions(self) -> int:
        """How often it ran."""
        return self.execution - self.first


@dataclass
class Found:
    """What a subscription or a channel brought: notifications, the reports in them, and their bytes."""

    notifications: int = 0
    reports: int = 0
    bytes: int = 0

    def add(self, other: Found) -> None:
        """Counts another as well."""
        self.notifications += other.notifications
        self.reports += other.reports
        self.bytes += other.bytes


class Tally:
    """Counts from nothing; the first look at the channels tells where they stood."""

    def __init__(self) -> None:
        self.published: Counter[str] = Counter()
        self.refused = 0
        self.channels: dict[str, Channel] = {}
        self.found: dict[int, Found] = {}
        """By BE subscription."""
        self.waiting_bytes = 0
        self.problems: list[str] = []
        self.rates: dict[int, float] = {}

    def look(self, channels: Iterable[dict[str, Any]]) -> None:
        """Takes in the server's list of channels; of a channel's executions between two looks, one is timed."""
        for item in channels:
            name, execution = item["name"], item["execution"]
            channel = self.channels.setdefault(name, Channel(name, item["period"] or 0.0, execution, execution))
            if execution > channel.execution:
                channel.execution = execution
                channel.seconds.append(item["seconds"])

    def add(self, be: int, found: Found) -> None:
        """Counts a notification."""
        self.found.setdefault(be, Found()).add(found)

    def total(self, bes: Iterable[int] | None = None) -> Found:
        """What these BE subscriptions brought, or all."""
        whole = Found()
        for be in self.found if bes is None else bes:
            whole.add(self.found.get(be, Found()))
        return whole

    @property
    def executions(self) -> int:
        """How often any channel ran."""
        return sum(channel.executions for channel in self.channels.values())

    @property
    def slowest(self) -> tuple[float, str]:
        """The longest execution seen and its channel; 0 and no name before the first."""
        return max(((s, c.name) for c in self.channels.values() for s in c.seconds), default=(0.0, ""))
