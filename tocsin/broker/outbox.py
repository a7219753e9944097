"""What a core has to say: actions in order, and notifications gathered into one frame per connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from tocsin.broker import encoding
from tocsin.broker.actions import Action, Close, Send, SendMany, ToCoordinator, ToData
from tocsin.broker.holdings import Session
from tocsin.model import control, coordination, subscriber

Reply = control.Attached | control.Detached | control.Results | control.Error
FINAL: Final = frozenset({"not-found", "gone", "invalid", "forbidden", "conflict"})
"""Errors of the data cluster that asking again would not change."""
_encode = msgspec.json.Encoder().encode


class Outbox:
    """Collects what one event leads to; ``now`` is the event's time.

    A connection with more than ``most`` bytes waiting has too many.
    """

    def __init__(self, most: int) -> None:
        self.now = 0.0
        self._most = most
        self._actions: list[Action] = []
        self._noted: list[Session] = []
        self._full: dict[Session, None] = {}

    def add(self, action: Action) -> None:
        """One more thing to do."""
        self._actions.append(action)

    def reply(self, session: Session, message: subscriber.Answer) -> None:
        """A message for a connection, unless it is closed."""
        if not session.closed:
            frame = _encode(message)
            session.waiting += len(frame)
            session.unread += len(frame) if session.slow else 0
            if session.waiting > self._most:
                self._full[session] = None
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

    def note(self, sessions: Iterable[Session], note: bytes) -> None:
        """One more notification for the next frame of each of these connections."""
        noted = self._noted
        for session in sessions:
            notes = session.notes
            if not notes:
                noted.append(session)
            notes.append(note)

    def note_missed(self, session: Session, note: bytes) -> None:
        """The same for one connection that had missed it."""
        self.note((session,), note)
        session.noted += len(note)

    def send_notes(self) -> list[Session]:
        """Makes frames of what was noted, one for all who get the same; who has too much waiting now."""
        if not (self._noted or self._full):
            return []
        groups: dict[tuple[bytes, ...], list[Session]] = {}
        for session in self._noted:
            notes = tuple(session.notes)
            session.notes.clear()
            if session.closed:
                continue
            group = groups.get(notes)
            if group is None:
                groups[notes] = group = []
            group.append(session)
        for notes, sessions in groups.items():
            self._send(sessions, encoding.join(notes))
        full = list(self._full)
        self._noted, self._full = [], {}
        return full

    def take(self) -> list[Action]:
        """All actions since the last time."""
        actions, self._actions = self._actions, []
        return actions

    def _send(self, sessions: list[Session], frame: bytes) -> None:
        size, most = len(frame), self._most
        for session in sessions:
            session.waiting += size
            session.noted = 0
            if session.waiting > most:
                self._full[session] = None
        self.add(SendMany([session.id for session in sessions], frame))


class DataRequests:
    """Requests to the data cluster. What is asked while the link is down is not kept: its part asks again."""

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
        """Hands an answer, or a part of one, to whom it is for; one that nobody waits for is late."""
        more = isinstance(answer, control.Results) and answer.more
        find = self._asked.get if more else self._asked.pop
        if answer.id is not None and (then := find(answer.id, None)):
            then(answer)

    def connected(self) -> None:
        self.up = True

    def lost(self) -> None:
        self.up = False
        self._asked.clear()


def to_be_repeated(error: control.Error) -> bool:
    """Whether the request failed in a way that may pass."""
    return error.code not in FINAL


class CoordinatorMessages:
    """Messages to the coordinator; nothing is said while the link is down."""

    def __init__(self, outbox: Outbox) -> None:
        self.up = False
        self._outbox = outbox

    def tell(self, message: coordination.FromBroker) -> None:
        """Sends a message, if it can be."""
        if self.up:
            self._outbox.add(ToCoordinator(message))
