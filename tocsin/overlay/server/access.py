"""Whose tokens are good here: those of the overlay's brokers, and of its clients."""

from __future__ import annotations

import time
from hmac import compare_digest
from math import inf
from typing import Final, NamedTuple

from tocsin.coordinator.tokens import Claims, Verifier
from tocsin.errors import ForbiddenError, InvalidError, SettingsError, UnauthorizedError
from tocsin.http.listening import is_loopback
from tocsin.model.trust import PublicKey, Trust
from tocsin.settings.overlay import OverlaySettings

_SHARED: Final = "this needs the clients' token of the overlay: 'Authorization: Bearer TOKEN'"
_SIGNED: Final = "this needs a token that the coordinator has signed: 'Authorization: Bearer TOKEN'"


class ClientIdentity(NamedTuple):
    """Who has connected. Without a ``name`` nobody knows, and it says so itself; a token ends when it ``expires``."""

    name: str = ""
    expires: float = inf

    def check(self, name: str) -> None:
        """Raises InvalidError unless it may call itself this: by its own name, or that with ``+`` and more after it."""
        if self.name and name != self.name and not name.startswith(f"{self.name}+"):
            raise InvalidError(f"the token is that of {self.name}: the name is {self.name}, or {self.name}+ANYTHING")


class OverlayAccess:
    """Compares tokens with those of the settings, or checks their signatures. A token that is not set is not asked for.

    With ``public_keys`` the clients' token is of no use: it could not say whose it is.
    """

    def __init__(self, settings: OverlaySettings) -> None:
        self._token, self._client_token = settings.token, settings.client_token
        keys = dict(key.split(":", 1) for key in settings.public_keys)
        trust = Trust({id: PublicKey(text) for id, text in keys.items()})
        self._verifier = Verifier(trust) if keys else None

    def require_broker(self, authorization: str | None) -> None:
        """Raises UnauthorizedError unless another broker of the overlay sent the header."""
        if not _bears(authorization, self._token):
            raise UnauthorizedError("brokers link here with the overlay's token: set overlay.token as it is here")

    def require_client(self, authorization: str | None) -> ClientIdentity:
        """Who sent the header; UnauthorizedError or ForbiddenError unless it is a client, or a broker."""
        if self._is_broker(authorization):
            return ClientIdentity()
        if self._verifier is None:
            if not _bears(authorization, self._client_token):
                raise UnauthorizedError(_SHARED)
            return ClientIdentity()
        claims = self._claims(self._verifier, authorization)
        if claims.role != "subscriber":
            raise ForbiddenError(
                f"this needs a subscriber's token, and that of {claims.name} is for the role {claims.role}"
            )
        return ClientIdentity(claims.name, claims.expires)

    def require_reader(self, authorization: str | None) -> None:
        """Raises UnauthorizedError unless it may look at figures: any client, broker or operator."""
        if self._verifier is None or self._is_broker(authorization):
            self.require_client(authorization)
        else:
            self._claims(self._verifier, authorization)

    def _is_broker(self, authorization: str | None) -> bool:
        return bool(self._token) and _bears(authorization, self._token)

    def _claims(self, verifier: Verifier, authorization: str | None) -> Claims:
        token = _token_of(authorization)
        if not token:
            raise UnauthorizedError(_SIGNED)
        return verifier.verify(token, time.time())


def check_access(settings: OverlaySettings) -> None:
    """Raises SettingsError where strangers could link, or it is not clear who may come in."""
    if not settings.token and not is_loopback(settings.host):
        raise SettingsError(
            f"overlay.token is empty, and overlay.host = {settings.host} can be reached from other machines: "
            "set the same TOCSIN_OVERLAY_TOKEN for all brokers of the overlay, or listen on 127.0.0.1"
        )
    if settings.public_keys and settings.client_token:
        raise SettingsError(
            "overlay.client_token and overlay.public_keys are both set, and clients show either a token that all share "
            "or one that is signed: clear one of the two"
        )


def _bears(authorization: str | None, token: str) -> bool:
    return not token or compare_digest(_token_of(authorization).encode(), token.encode())


def _token_of(authorization: str | None) -> str:
    scheme, _, given = (authorization or "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""
