"""Bearer tokens and the roles they give. Only a token's SHA-256 is kept, which is of no use to who reads the store."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from tocsin.data.store.database import Database
from tocsin.data.store.labels import check_label
from tocsin.errors import ConflictError, InvalidError, StorageError
from tocsin.model.quoting import quote_value

_RENEW_SECONDS: Final = 0.5


class Role(StrEnum):
    """What the bearer of a token may do."""

    ADMIN = "admin"
    PUBLISHER = "publisher"
    BROKER = "broker"
    NODE = "node"


class StoredToken(msgspec.Struct, frozen=True):
    """A token as it can be shown: everything but the token itself."""

    name: str
    role: Role
    created_at: datetime


class TokenTable:
    """The tokens that are accepted."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database, self._clock = database, clock

    def add(self, name: str, role: str) -> str:
        """Make a token and return its text, which cannot be had again; refused when the name is taken."""
        row = (check_label(name), _role(role).value, self._clock().isoformat())
        token = f"tcs_{secrets.token_urlsafe(32)}"
        with self._database.changing() as connection:
            made = connection.execute(
                "INSERT INTO tokens (name, role, created_at, hash) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
                (*row, _hash(token)),
            )
            if not made.rowcount:
                raise ConflictError(f"there is a token {name} already: revoke it first, or choose another name")
        return token

    def revoke(self, name: str) -> bool:
        """Accept the token no longer; False when there was none of that name."""
        with self._database.changing() as connection:
            return connection.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount > 0

    def all(self) -> list[StoredToken]:
        with self._database.looking() as connection:
            rows = connection.execute("SELECT name, role, created_at FROM tokens ORDER BY created_at, name").fetchall()
        return [StoredToken(name, Role(role), datetime.fromisoformat(created_at)) for name, role, created_at in rows]

    def role_of(self, token: str) -> tuple[str, Role] | None:
        """The name and role behind a token's text, or None.

        How long the look-up takes depends on the hash of what was sent, so it tells a guesser nothing about tokens.
        """
        with self._database.looking() as connection:
            row = connection.execute("SELECT name, role FROM tokens WHERE hash = ?", (_hash(token),)).fetchone()
        return (row[0], Role(row[1])) if row else None

    def holders(self) -> dict[str, tuple[str, Role]]:
        """The name and role behind each token, by its hash."""
        with self._database.looking() as connection:
            rows = connection.execute("SELECT hash, name, role FROM tokens").fetchall()
        return {hash: (name, Role(role)) for hash, name, role in rows}


class RememberedTokens:
    """The tokens as they were a moment ago: nobody waits for a database that is far, slow or away."""

    def __init__(self, tokens: TokenTable) -> None:
        self._tokens, self._holders = tokens, tokens.holders()

    def role_of(self, token: str) -> tuple[str, Role] | None:
        """The name and role behind a token's text, or None."""
        return self._holders.get(_hash(token))

    async def renew(self) -> None:
        """Looks again every now and then. While the database is away, what was seen last counts."""
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            with suppress(StorageError):
                self._holders = await asyncio.to_thread(self._tokens.holders)


def _role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise InvalidError(f"unknown role {quote_value(text)}; roles are {', '.join(Role)}") from None


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
