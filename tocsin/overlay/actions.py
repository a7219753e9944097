"""What a broker of the overlay wants done, in order."""

from __future__ import annotations

import msgspec

from tocsin.overlay.dialogue import Note, ToPublisher, ToSubscriber
from tocsin.overlay.messages import FromLink, Routed


class Action(msgspec.Struct, frozen=True):
    """Base of all actions."""


class SendLink(Action, frozen=True):
    """A message for another broker; ``urgent`` ones overtake the others."""

    broker: str
    message: FromLink
    urgent: bool = True


class SendClient(Action, frozen=True):
    """A message for a connection; ``urgent`` ones overtake the others."""

    client: int
    message: ToSubscriber | ToPublisher
    urgent: bool = False


class SendNote(Action, frozen=True):
    """A publication for each of these connections."""

    clients: list[int]
    note: Note


class AwaitFlush(Action, frozen=True):
    """Wants to be told with Flushed when little of what was sent on a connection still waits."""

    client: int


class CloseClient(Action, frozen=True):
    """Ends a connection; the core has forgotten it already."""

    client: int
    reason: str


class CloseLink(Action, frozen=True):
    """Ends a link; the core has forgotten it already. ``circle``, if that is since heads are linked in one; otherwise
    the other broker has said what is not for it to say."""

    broker: str
    reason: str
    circle: bool = False


class ForgetPublishers(Action, frozen=True):
    """These names are to be known no more, after all that was to be stored before; a new publisher's numbers begin
    after ``floor``."""

    names: list[str]
    floor: int


class AppendLog(Action, frozen=True):
    """One more publication to be stored; to be answered with LogStored, in order."""

    publication: Routed
