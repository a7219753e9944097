"""What the demo and the process of its people say to each other: one JSON object per line, told by its ``type``."""

from __future__ import annotations

from typing import Any

import msgspec

# Person → subscription → executions, in the order in which their notes came.
Received = dict[str, dict[int, list[int]]]


class Message(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of all messages."""


class Begin(Message, frozen=True, tag="begin"):
    """Live from now on: move about, and report emergencies."""


class Hush(Message, frozen=True, tag="hush"):
    """Publish nothing more. What comes is still received."""


class Account(Message, frozen=True, tag="account"):
    """Asks for :class:`Ledger`."""


class Gathering(Message, frozen=True, tag="gathering"):
    """So many people are connected and have their subscriptions."""

    people: int


class Gathered(Message, frozen=True, tag="gathered"):
    """All are."""

    people: int
    subscriptions: int
    distinct: int


class Heard(Message, frozen=True, tag="heard"):
    """One of the notifications that somebody got: how many reports it has, and the gravest of them."""

    who: str
    channel: str
    parameters: dict[str, Any]
    rows: int
    gravest: dict[str, Any]


class Moved(Message, frozen=True, tag="moved"):
    """Somebody's program went over to another broker, without a gap."""

    who: str
    before: str
    after: str


class Figures(Message, frozen=True, tag="figures"):
    """All that happened so far, counted. ``waits`` has how many reports came after so many tenths of a second."""

    notifications: int = 0
    reports: int = 0
    bytes: int = 0
    published: dict[str, int] = {}
    withheld: int = 0
    moved: int = 0
    lost_connections: int = 0
    duplicates: int = 0
    disordered: int = 0
    waits: dict[int, int] = {}


class Ledger(Message, frozen=True, tag="ledger"):
    """What everybody got."""

    received: Received


class Trouble(Message, frozen=True, tag="trouble"):
    """Something a person should see."""

    message: str


Order = Begin | Hush | Account
Telling = Gathering | Gathered | Heard | Moved | Figures | Ledger | Trouble
