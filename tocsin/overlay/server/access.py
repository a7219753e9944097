"""Whose tokens are good here: those of the overlay's brokers, and of its clients."""

from __future__ import annotations

from hmac import compare_digest

from tocsin.errors import SettingsError, UnauthorizedError
from tocsin.http.listening import is_loopback
from tocsin.settings.overlay import OverlaySettings


class OverlayAccess:
    """Compares tokens with those of the settings. A token that is not set is not asked for."""

    def __init__(self, token: str, client_token: str) -> None:
        self._token, self._client_token = token, client_token

    def require_broker(self, authorization: str | None) -> None:
        """Raises UnauthorizedError unless another broker of the overlay sent the header."""
        if not _bears(authorization, self._token):
            raise UnauthorizedError("brokers link here with the overlay's token: set overlay.token as it is here")

    def require_client(self, authorization: str | None) -> None:
        """Raises UnauthorizedError unless a client sent the header, or a broker."""
        if not _bears(authorization, self._client_token) and not (self._token and _bears(authorization, self._token)):
            raise UnauthorizedError("this needs the clients' token of the overlay: 'Authorization: Bearer TOKEN'")


def check_access(settings: OverlaySettings) -> None:
    """Raises SettingsError where strangers could link."""
    if not settings.token and not is_loopback(settings.host):
        raise SettingsError(
            f"overlay.token is empty, and overlay.host = {settings.host} can be reached from other machines: "
            "set the same TOCSIN_OVERLAY_TOKEN for all brokers of the overlay, or listen on 127.0.0.1"
        )


def _bears(authorization: str | None, token: str) -> bool:
    if not token:
        return True
    scheme, _, given = (authorization or "").partition(" ")
    return scheme.lower() == "bearer" and compare_digest(given.strip().encode(), token.encode())
