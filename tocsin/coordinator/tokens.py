"""Tokens: who somebody is, signed by the coordinator and checked by brokers without asking it.

A token is two parts of base64url with a dot between: a compact JSON of the claims, and its HMAC-SHA256.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Literal

import msgspec

from tocsin.errors import InvalidError, UnauthorizedError
from tocsin.model.terms import SubscriberName

Role = Literal["subscriber", "broker", "operator"]


class Claims(msgspec.Struct, frozen=True):
    """What a token says: a name, what its bearer may do, and until when (seconds since 1970)."""

    name: SubscriberName
    role: Role
    expires: float


def claims(name: str, role: Role, expires: float) -> Claims:
    """Claims with a name that is one; any other is an InvalidError."""
    try:
        # A pattern's end also matches before a last line break.
        return Claims(msgspec.convert(name.replace("\n", " "), SubscriberName), role, expires)
    except msgspec.ValidationError:
        raise InvalidError(
            f"{name[:128]!r} is no name: up to 128 letters, digits and . _ : @ -, first a letter or digit"
        ) from None


def sign(key: str, claims: Claims) -> str:
    """A token for these claims."""
    body = _text(msgspec.json.encode(claims))
    return f"{body}.{_text(_mark(key, body))}"


def verify(key: str, token: str, now: float) -> Claims:
    """What a token claims; one that was not signed with this key, or is no longer valid, is an UnauthorizedError."""
    body, _, mark = token.partition(".")
    try:
        # Compared as decoded bytes and always in full, so that the time it takes tells nothing about the right ones.
        signed = hmac.compare_digest(_bytes(mark), _mark(key, body))
        claims = msgspec.json.decode(_bytes(body), type=Claims) if signed else None
    except (ValueError, msgspec.MsgspecError):
        claims = None
    if claims is None:
        raise UnauthorizedError("the token was not signed here: ask the coordinator for one")
    if now >= claims.expires:
        raise UnauthorizedError(f"the token of {claims.name} is no longer valid: ask the coordinator for a new one")
    return claims


def expiry(token: str) -> float | None:
    """When a token says it ends, for whoever holds it: who signed it is not looked at. None for what is no token."""
    try:
        return msgspec.json.decode(_bytes(token.partition(".")[0]), type=Claims).expires
    except (ValueError, msgspec.MsgspecError):
        return None


def _mark(key: str, body: str) -> bytes:
    return hmac.new(key.encode(), body.encode(), sha256).digest()


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
