"""What leaves the head: messages in order, and orders with numbers."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.slices.actions import Action, Send
from tocsin.slices.messages import FromHead, Order
from tocsin.slices.registry import NodeRegistry


class HeadPost:
    """Collects actions. Who has no connection is told nothing: it is told everything when it is back."""

    def __init__(self, registry: NodeRegistry) -> None:
        self._registry = registry
        self._actions: list[Action] = []
        self._orders = 0

    def add(self, action: Action) -> None:
        """One more thing to be done."""
        self._actions.append(action)

    def say(self, node: str, message: FromHead) -> None:
        """A message for a node."""
        member = self._registry.get(node)
        if member is not None and member.connection is not None:
            self._actions.append(Send(member.connection, message))

    def order(self, node: str, order: Callable[[int], Order]) -> None:
        """The next order for a node, made with its number."""
        self._orders += 1
        self.say(node, order(self._orders))

    def take(self) -> list[Action]:
        """All that is to be done."""
        actions, self._actions = self._actions, []
        return actions
