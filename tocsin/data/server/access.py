"""Who may do what: bearer tokens, their roles, and what each call asks for."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from tocsin.data.server.cluster import KnownTokens
from tocsin.errors import ForbiddenError, UnauthorizedError

ADMIN: Final = "admin"


class Access(StrEnum):
    """What a call asks of its caller. An admin may do everything."""

    OPEN = "open"
    ANY = "any"
    PUBLISHER = "publisher"
    BROKER = "broker"
    NODE = "node"
    ADMIN = "admin"


class Caller(msgspec.Struct, frozen=True):
    """Someone with a known token."""

    name: str
    role: str

    def require(self, access: Access) -> None:
        """Raises ForbiddenError, naming the role that is needed, unless the caller has it."""
        if access in (Access.OPEN, Access.ANY) or self.role in (access, ADMIN):
            return
        # Subscribers publish through their brokers.
        if access is Access.PUBLISHER and self.role == Access.BROKER:
            return
        raise ForbiddenError(
            f"this needs a token with the role {access}; the token of {self.name} has the role {self.role}"
        )

    def require_name(self, name: str) -> None:
        """Raises ForbiddenError when this is another broker's or node's token; an admin's is good for each."""
        if self.role in (Access.BROKER, Access.NODE) and self.name != name:
            raise ForbiddenError(
                f"this is the token of {self.role} {self.name}, and {name} needs its own: "
                f"'tocsin token add {name} --role {self.role}' makes one"
            )


class Gate:
    """Turns an ``Authorization`` header into its :class:`Caller`."""

    def __init__(self, tokens: KnownTokens, demo_token: str | None = None) -> None:
        self._tokens, self._demo_token = tokens, demo_token

    def caller(self, authorization: str | None) -> Caller:
        """Whoever sent the header; UnauthorizedError when there is none, or it is of nobody known."""
        token = self.token(authorization)
        if token is None:
            raise UnauthorizedError("no token: send the header 'Authorization: Bearer TOKEN'")
        return self.holder(token)

    def token(self, authorization: str | None) -> str | None:
        """The token in a header, if there is one; a header of another kind is an UnauthorizedError."""
        if not authorization:
            return None
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise UnauthorizedError("the Authorization header must be 'Bearer TOKEN'")
        return token.strip()

    def holder(self, token: str) -> Caller:
        """Whoever holds the token; UnauthorizedError when nobody known does."""
        if self._demo_token is not None and token == self._demo_token:
            return Caller("demo", ADMIN)
        found = self._tokens.role_of(token)
        if found is None:
            raise UnauthorizedError("this token is not known here; 'tocsin token add' makes one")
        name, role = found
        return Caller(name, str(role))
