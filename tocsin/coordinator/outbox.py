"""What leaves the coordinator, in order, and never before what it rests on is stored."""

from __future__ import annotations

from collections import deque

from tocsin.coordinator.actions import Action, Send, StoreBatch
from tocsin.coordinator.events import Link
from tocsin.coordinator.store.records import Change, PutCursors
from tocsin.model.coordination import FromCoordinator


class TransactionalOutbox:
    """Collects the changes and the actions of one event. All changes of an event make one batch.

    An action waits for every change that was written before it, whether or not it has to do with it: so no order
    between actions is ever turned round, and nobody can have heard of what a crash would undo. Refusals and figures
    rest on nothing, and do not wait.

    ``full`` says that the store has fallen behind by more than ``most`` changes: nothing new is to be begun.
    """

    def __init__(self, most: int) -> None:
        self._most, self._unstored = most, 0
        self._batch = self._stored = 0
        self._changes: list[Change] = []
        self._waiting: deque[tuple[int, Action]] = deque()
        self._batches: deque[tuple[int, int]] = deque()
        self._now: list[Action] = []

    @property
    def full(self) -> bool:
        """Whether too much waits to be stored, or for something to be stored."""
        return self._unstored > self._most or len(self._waiting) > self._most

    def write(self, change: Change) -> None:
        """Adds a change to the batch of this event."""
        self._changes.append(change)

    def say(self, action: Action) -> None:
        """Wants an action done once all that was written up to now is stored."""
        self._waiting.append((self._batch + bool(self._changes), action))

    def say_now(self, action: Action) -> None:
        """Wants an action done that rests on nothing written."""
        self._now.append(action)

    def send(self, link: Link | None, message: FromCoordinator) -> None:
        """Wants a message sent; without a link it is left out."""
        if link is not None:
            self.say(Send(link, message))

    def stored(self, batch: int) -> None:
        """This batch and all before it are stored."""
        self._stored = max(self._stored, batch)
        while self._batches and self._batches[0][0] <= self._stored:
            self._unstored -= self._batches.popleft()[1]

    def flush(self) -> list[Action]:
        """What is to be done now; called once per event."""
        actions, self._now = self._now, []
        if self._changes:
            self._batch += 1
            actions.append(StoreBatch(self._batch, tuple(self._changes)))
            # However many cursors there are, a driver keeps the last of each.
            lasting = sum(not isinstance(change, PutCursors) for change in self._changes)
            self._batches.append((self._batch, lasting))
            self._unstored += lasting
            self._changes.clear()
        while self._waiting and self._waiting[0][0] <= self._stored:
            actions.append(self._waiting.popleft()[1])
        return actions
