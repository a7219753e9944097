"""Tokens at a broker: subscribers' to log in and operators' to look, checked without asking the coordinator; and its
own, whose end is told before it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from tocsin.broker.holdings import Bearer
from tocsin.coordinator.tokens import Claims, Role, Verifier, expiry
from tocsin.errors import ForbiddenError, UnauthorizedError
from tocsin.log import get_logger
from tocsin.model.trust import Trust

log = get_logger(__name__)

DAY: Final = 86_400.0
NOTICE: Final = 7 * DAY


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


class Expiry:
    """When the broker's own token ends: from then on the coordinator would not let it in again.

    One that does not say so, like that of the demo, never does.
    """

    def __init__(self, broker: str, token: str, now: Callable[[], float] = time.time) -> None:
        self._broker, self._now, self._ends = broker, now, expiry(token)

    def warning(self) -> str | None:
        """What somebody should do soon; None while there is time."""
        if self._ends is None or self._now() < self._ends - NOTICE:
            return None
        day = datetime.fromtimestamp(min(self._ends, 253e9), UTC).isoformat(" ", "minutes").removesuffix("+00:00")
        verb = "ends" if self._now() < self._ends else "has ended"
        return (
            f"broker.token {verb} at {day} UTC, after which the coordinator does not let this broker in again: make "
            f"another with 'tocsin token sign {self._broker} --role broker'"
        )

    async def watch(self) -> None:
        """Warns in the log once a day, for ever."""
        while True:
            if warning := self.warning():
                log.warning("the broker's token ends soon", broker=self._broker, advice=warning)
            await asyncio.sleep(DAY if self._ends is None else min(DAY, max(1.0, self._until_notice())))

    def _until_notice(self) -> float:
        assert self._ends is not None
        remaining = self._ends - NOTICE - self._now()
        return remaining if remaining > 0 else DAY
