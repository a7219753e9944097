"""Whose tokens are good here: subscribers' to log in, operators' to look. Checked without asking the coordinator."""

from __future__ import annotations

import time

from tocsin.broker.holdings import Bearer
from tocsin.coordinator.tokens import Claims, Role, Verifier
from tocsin.errors import ForbiddenError, UnauthorizedError
from tocsin.model.trust import Trust


class BrokerAccess:
    """Knows what tokens are checked with, once the coordinator has told it. ``demo_token`` is an operator's."""

    def __init__(self, demo_token: str | None = None) -> None:
        self._demo_token = demo_token
        self._verifier: Verifier | None = None

    def learn(self, trust: Trust) -> None:
        """From now on tokens are checked with this."""
        self._verifier = Verifier(trust)

    def subscriber(self, token: str) -> Bearer:
        """The subscriber a token was made for; UnauthorizedError if it is none's."""
        claims = self._claims(token)
        if claims.role != "subscriber":
            raise UnauthorizedError(f"this is the token of {_article(claims.role)}; log in with that of a subscriber")
        return Bearer.of(claims, time.time())

    def require_operator(self, authorization: str | None) -> str:
        """The name of the operator who sent the header; UnauthorizedError or ForbiddenError if it was none."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise UnauthorizedError("this needs an operator's token: send 'Authorization: Bearer TOKEN'")
        if self._demo_token is not None and token.strip() == self._demo_token:
            return "demo"
        claims = self._claims(token.strip())
        if claims.role != "operator":
            raise ForbiddenError(f"this needs an operator's token; that of {claims.name} is {_article(claims.role)}'s")
        return claims.name

    def _claims(self, token: str) -> Claims:
        if self._verifier is None:
            raise UnauthorizedError("the broker has not reached its coordinator yet; try again soon")
        return self._verifier.verify(token, time.time())


def _article(role: Role) -> str:
    return f"an {role}" if role == "operator" else f"a {role}"
