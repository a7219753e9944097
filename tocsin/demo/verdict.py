"""Whether everybody got what was for them: what was delivered, against what the data cluster had found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tocsin.demo.telling import Received

# Subscription → executions that found something for it.
Found = Mapping[int, frozenset[int]]


@dataclass(frozen=True)
class Verdict:
    """Notifications that should have been delivered, and how many of them were not."""

    expected: int
    lost: int

    @property
    def delivered(self) -> int:
        """How many were."""
        return self.expected - self.lost


def verdict(received: Received, found: Found) -> Verdict:
    """``received`` has everybody's subscriptions, also those of which nothing came."""
    expected = lost = 0
    for subscriptions in received.values():
        for subscription, executions in subscriptions.items():
            due = found.get(subscription, frozenset())
            expected += len(due)
            lost += len(due.difference(executions))
    return Verdict(expected, lost)
