"""What a core has to say: actions in order, and notifications gathered into one frame per connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from tocsin.broker.actions import Action, Close, Send, ToCoordinator, ToData
from tocsin.broker.frames import Frames
from tocsin.broker.holdings import Session
from tocsin.model import control, coordination, subscriber

Reply = control.Attached | control.Detached | control.Results | control.Error
FINAL: Final = frozenset({"not-found", "invalid", "forbidden", "conflict"})
"""Errors of the data cluster that asking again would not change."""
_encode = msgspec.json.Encoder().encode


class Outbox:
    """Collects what one event leads to; ``now`` is the event's time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._actions: list[Action] = []
        self._touched: dict[Session, None] = {}

    def add(self, action: Action) -> None:
        """One more thing to do."""
        self._actions.append(action)

    def reply(self, session: Session, message: subscriber.Answer) -> None:
        """A message for a connection, unless it is closed."""
        if not session.closed:
            frame = _encode(message)
            session.waiting += len(frame)
            session.unread += len(frame) if session.slow else 0
            self._touched[session] = None
            self.add(Send(session.id, frame))

    def refuse(
        self, session: Session, code: str, message: str, id: int | None = None, retry_after: float | None = None
    ) -> None:
        """Tells a connection why not."""
        self.reply(session, subscriber.Error(code, message, id, retry_after))

    def close(self, session: Session, code: int, reason: str) -> None:
        """Ends a connection."""
        if not session.closed:
            session.closed = True
            self.add(Close(session.id, code, reason))

    def note(self, session: Session, note: bytes) -> None:
        """One more notification for the connection's next frame."""
        session.notes.append(note)
        session.waiting += len(note)
        self._touched[session] = None

    def send_notes(self) -> list[Session]:
        """Makes frames of what was noted; all connections that were sent something since the last time."""
        frames, touched = Frames(), [session for session in self._touched if not session.closed]
        for session in touched:
            if session.notes:
                self.add(Send(session.id, frames.join(session.notes)))
        # Only now: while frames are made, notes are told apart by identity.
        for session in touched:
            session.notes = []
        self._touched.clear()
        return touched

    def take(self) -> list[Action]:
        """All actions since the last time."""
        actions, self._actions = self._actions, []
        return actions


class DataLink:
    """Requests to the data cluster. What is asked while the link is down is not kept: its room asks again."""

    def __init__(self, outbox: Outbox) -> None:
        self.up = False
        self._outbox = outbox
        self._last = 0
        self._asked: dict[int, Callable[[Reply], None]] = {}

    def ask(self, request: Callable[[int], control.Request], then: Callable[[Reply], None]) -> None:
        """Sends a request; ``then`` gets its answer, or nothing if the link is lost before."""
        if self.up:
            self._last += 1
            self._asked[self._last] = then
            self._outbox.add(ToData(request(self._last)))

    def answered(self, answer: Reply) -> None:
        """Hands an answer to whom it is for; one that nobody waits for is late."""
        if answer.id is not None and (then := self._asked.pop(answer.id, None)):
            then(answer)

    def connected(self) -> None:
        self.up = True

    def lost(self) -> None:
        self.up = False
        self._asked.clear()


def to_be_repeated(error: control.Error) -> bool:
    """Whether the request failed in a way that may pass."""
    return error.code not in FINAL


class CoordinatorLink:
    """Messages to the coordinator; nothing is said while the link is down."""

    def __init__(self, outbox: Outbox) -> None:
        self.up = False
        self._outbox = outbox

    def tell(self, message: coordination.FromBroker) -> None:
        """Sends a message, if it can be."""
        if self.up:
            self._outbox.add(ToCoordinator(message))
