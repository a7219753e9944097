"""Who may do what: tokens that the coordinator signed, and the demo token."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.coordinator.tokens import Claims, Role, Verifier
from tocsin.errors import ForbiddenError, UnauthorizedError
from tocsin.model.trust import Trust


class Authenticator:
    """Turns an ``Authorization`` header into what its token claims. ``demo_token`` is an operator's and a broker's."""

    def __init__(self, trust: Trust, now: Callable[[], float], demo_token: str | None = None) -> None:
        self._verifier, self._now, self._demo_token = Verifier(trust), now, demo_token

    def learn(self, trust: Trust) -> None:
        """From now on tokens are checked with this."""
        self._verifier = Verifier(trust)

    def token(self, authorization: str | None) -> str:
        """The token in a header; without one it is an UnauthorizedError."""
        if not authorization:
            raise UnauthorizedError("no token: send the header 'Authorization: Bearer TOKEN'")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise UnauthorizedError("the Authorization header must be 'Bearer TOKEN'")
        return token.strip()

    def is_demo(self, token: str) -> bool:
        """Whether it is the token that everyone knows, and that is accepted here."""
        return self._demo_token is not None and token == self._demo_token

    def identify(self, authorization: str | None) -> Claims:
        """What the token claims, whatever its role; the demo token is an operator's here."""
        token = self.token(authorization)
        if self.is_demo(token):
            return Claims("demo", "operator", float("inf"))
        return self._verifier.verify(token, self._now())

    def require(self, authorization: str | None, role: Role) -> Claims:
        """What the token claims; UnauthorizedError when it is none of ours, ForbiddenError when of another role."""
        token = self.token(authorization)
        if self.is_demo(token) and role != "subscriber":
            return Claims("demo", role, float("inf"))
        claims = self._verifier.verify(token, self._now())
        if claims.role != role:
            raise ForbiddenError(
                f"this needs a token with the role {role}; the token of {claims.name} has the role {claims.role} "
                f"('tocsin token sign NAME --role {role}' makes one)"
            )
        return claims
