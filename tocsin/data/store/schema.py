"""The store's tables. A schema once released is never edited: a change is a further entry of ``MIGRATIONS``."""

from __future__ import annotations

from typing import Final

_FIRST: Final = (
    # What is kept outside this file but derived from it names the store it was derived from.
    "CREATE TABLE identity (text TEXT NOT NULL)",
    "INSERT INTO identity VALUES (lower(hex(randomblob(16))))",
    # Names are kept case-folded, as SQL compares them; the content has them as their author wrote them.
    """
    CREATE TABLE definitions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        content TEXT NOT NULL,
        created_at TEXT NOT NULL,
        UNIQUE (kind, name)
    )
    """,
    """
    CREATE TABLE brokers (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        url TEXT NOT NULL,
        registered_at TEXT NOT NULL
    )
    """,
    # AUTOINCREMENT, because the id of a subscription that is gone must never come to mean another.
    """
    CREATE TABLE subscriptions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        channel INTEGER NOT NULL,
        key TEXT NOT NULL,
        UNIQUE (channel, key)
    )
    """,
    """
    CREATE TABLE holders (
        be INTEGER NOT NULL,
        broker INTEGER NOT NULL,
        PRIMARY KEY (be, broker)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE tokens (
        name TEXT PRIMARY KEY,
        role TEXT NOT NULL,
        hash TEXT NOT NULL UNIQUE,
        created_at TEXT NOT NULL
    )
    """,
)

_INCARNATIONS: Final = (
    # By the name, not the definition: that a channel was dropped is to be known when there is another of its name.
    """
    CREATE TABLE incarnations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        channel TEXT NOT NULL,
        incarnation TEXT NOT NULL,
        began INTEGER NOT NULL
    )
    """,
    "CREATE INDEX incarnations_of ON incarnations (channel, id)",
)

_SET_ASIDE: Final = (
    """
    CREATE TABLE set_aside (
        channel INTEGER NOT NULL,
        key TEXT NOT NULL,
        reason TEXT NOT NULL,
        until REAL NOT NULL,
        PRIMARY KEY (channel, key)
    ) WITHOUT ROWID
    """,
)

MIGRATIONS: Final = (_FIRST, _INCARNATIONS, _SET_ASIDE)
