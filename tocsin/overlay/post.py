"""What a core has to say: actions in order, and which messages overtake others, in whatever drives the core."""

from __future__ import annotations

from tocsin.overlay.actions import Action, SendClient, SendLink
from tocsin.overlay.dialogue import Move, Settle, ToPublisher, ToSubscriber
from tocsin.overlay.messages import Control, Found, FromLink, Mark, Routed


class Post:
    """Collects what one event leads to; ``now`` is the event's time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._actions: list[Action] = []

    def add(self, action: Action) -> None:
        """One more thing to do."""
        self._actions.append(action)

    def send(self, broker: str, message: FromLink) -> None:
        """A message for another broker; publications and marks are overtaken by all others, but for what somebody has
        missed of these."""
        found = isinstance(message, Control) and isinstance(message.body, Found)
        self.add(SendLink(broker, message, urgent=not (found or isinstance(message, Routed | Mark))))

    def reply(self, client: int, message: ToSubscriber | ToPublisher) -> None:
        """A message for a connection; what moves a subscriber overtakes all others, so that load does not delay it."""
        self.add(SendClient(client, message, urgent=isinstance(message, Move | Settle)))

    def take(self) -> list[Action]:
        """All actions since the last time."""
        actions, self._actions = self._actions, []
        return actions
