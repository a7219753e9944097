"""Subscribers' programs for long runs: the shipped core, and of what it was given only the number."""

from __future__ import annotations

from typing import Any

from tocsin.overlay import subscriber
from tocsin.simulate.overlay.clients import SubscriberHost


class CountingSubscriber(SubscriberHost):
    """Keeps no publications, and leaves no trace."""

    given = 0

    def tell(self, event: Any, data: bytes | str = b"") -> None:  # noqa: ARG002
        """Has the core handle an event."""
        if not self.alive:
            return
        actions = self.core.handle(self.world.clock.now, event)
        if len(actions) == 1 and type(actions[0]) is subscriber.Give:
            # Nobody wants to be woken for what it has been given.
            self.given += 1
            return
        for action in actions:
            self.carry_out(action)
        self._arm()

    def carry_out(self, action: subscriber.SubscriberAction) -> None:
        """Does what the core wants done."""
        if isinstance(action, subscriber.Give):
            self.given += 1
        else:
            super().carry_out(action)
