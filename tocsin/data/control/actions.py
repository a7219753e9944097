"""What the core of a control connection wants done: its words to the drivers."""

from __future__ import annotations

import msgspec

from tocsin.model import control
from tocsin.model.histories import Cursor

Work = control.Attach | control.Detach | control.Pull


class Action(msgspec.Struct, frozen=True):
    """Base of all actions."""


class Send(Action, frozen=True):
    """Send a message; there is no other before the driver says that it was taken."""

    message: control.ControlMessage


class CarryOut(Action, frozen=True):
    """Have the storage carry a request out. There is one outcome: of a pull, its first part; the rest may be left."""

    request: Work


class ReadOn(Action, frozen=True):
    """Read the next part of the pull under way."""


class CompareHistories(Action, frozen=True):
    """The broker has heard of this execution of a channel: by that other data than before are noticed."""

    channel: str
    known: Cursor
