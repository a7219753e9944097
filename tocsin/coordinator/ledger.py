"""What leaves the coordinator, in order, and never before what it rests on is stored."""

from __future__ import annotations

from collections import deque

from tocsin.coordinator.actions import Action, Send, Store
from tocsin.coordinator.events import Link
from tocsin.coordinator.store.records import Change
from tocsin.model.coordination import FromCoordinator


class Ledger:
    """Collects the changes and the actions of one event. All changes of an event make one batch.

    An action waits for every change that was written before it, whether or not it has to do with it: so no order
    between actions is ever turned round, and nobody can have heard of what a crash would undo.
    """

    def __init__(self) -> None:
        self._batch = self._stored = 0
        self._changes: list[Change] = []
        self._waiting: deque[tuple[int, Action]] = deque()

    def write(self, change: Change) -> None:
        """Adds a change to the batch of this event."""
        self._changes.append(change)

    def say(self, action: Action) -> None:
        """Wants an action done once all that was written up to now is stored."""
        self._waiting.append((self._batch + bool(self._changes), action))

    def send(self, link: Link | None, message: FromCoordinator) -> None:
        """Wants a message sent; without a link it is left out."""
        if link is not None:
            self.say(Send(link, message))

    def stored(self, batch: int) -> None:
        """This batch and all before it are stored."""
        self._stored = max(self._stored, batch)

    def flush(self) -> list[Action]:
        """What is to be done now; called once per event."""
        actions: list[Action] = []
        if self._changes:
            self._batch += 1
            actions.append(Store(self._batch, tuple(self._changes)))
            self._changes.clear()
        while self._waiting and self._waiting[0][0] <= self._stored:
            actions.append(self._waiting.popleft()[1])
        return actions
