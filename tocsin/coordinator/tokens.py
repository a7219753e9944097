"""Tokens: who somebody is, signed by the coordinator and checked by brokers without asking it.

A token is two parts of base64url with a dot between: a compact JSON of the claims, and its Ed25519 signature. Whoever
checks tokens has public keys, with which none can be made.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from collections import OrderedDict
from functools import lru_cache
from secrets import token_urlsafe
from threading import Lock
from typing import Final, Literal

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tocsin.errors import InvalidError, UnauthorizedError
from tocsin.model.terms import Groups, SubscriberName
from tocsin.model.trust import Trust

# About a kilobyte each: some ten thousand who come back need not be checked again.
_REMEMBERED: Final = 16_384
Role = Literal["subscriber", "broker", "operator"]
_UNSIGNED = "the token was not signed here: ask the coordinator for one"
_OLD = (
    "the token was signed by an earlier version of Tocsin, in a way that is no longer taken: make a new one with "
    "'tocsin token sign NAME --role ROLE'"
)


def new_id() -> str:
    """By which a token can be told from all others."""
    return token_urlsafe(9)


class Claims(msgspec.Struct, frozen=True):
    """What a token says: a name, what its bearer may do, and until when (seconds since 1970).

    ``groups`` are those of a subscriber. ``registration`` grows when a name is registered anew after its bearer was
    removed: then it is another person's. ``series`` grows when all tokens of a name are withdrawn, ``id`` tells a token
    from all others, ``key`` names the key that signed it.
    """

    name: SubscriberName
    role: Role
    expires: float
    groups: Groups = ()
    series: int = 0
    id: str = msgspec.field(default_factory=new_id)
    key: str = ""
    registration: int = 0


class SigningKey(msgspec.Struct, frozen=True):
    """A key that signs: its secret half as base64url. What it signed is taken until ``until``, if that is said."""

    id: str
    secret: str
    until: float | None = None

    @classmethod
    def new(cls) -> SigningKey:
        """One that nobody else has."""
        return cls(token_urlsafe(6), _text(Ed25519PrivateKey.generate().private_bytes_raw()))

    @property
    def public(self) -> str:
        """The half that only verifies."""
        return _public_half(self.secret)

    def sign(self, claims: Claims) -> str:
        """A token for these claims."""
        said = msgspec.json.encode(msgspec.structs.replace(claims, key=self.id))
        body = _text(said)
        token = f"{body}.{_text(_private(self.secret).sign(body.encode()))}"
        # Whoever is given a token comes with it next.
        _known.add(self.public, token, msgspec.json.decode(said, type=Claims))
        return token


class Verifier:
    """Checks tokens by what is trusted."""

    def __init__(self, trust: Trust) -> None:
        self.trust = trust
        self._keys = {id: _public(key.text) for id, key in trust.keys.items()}

    def verify(self, token: str, now: float) -> Claims:
        """What a token claims; one that was not signed with these keys, or is no longer taken, is an UnauthorizedError.

        ``expires`` of the claims is no later than the key's own end.
        """
        claims = self._check_signature(token)
        fault = self.trust.fault(name=claims.name, token=claims.id, key=claims.key, series=claims.series)
        if fault is not None:
            raise UnauthorizedError(fault)
        until = self.trust.keys[claims.key].until
        if until is not None:
            claims = msgspec.structs.replace(claims, expires=min(claims.expires, until))
        if now >= claims.expires:
            raise UnauthorizedError(f"the token of {claims.name} is no longer valid: ask the coordinator for a new one")
        return claims

    def _check_signature(self, token: str) -> Claims:
        known = _known.get(token)
        if known and (trusted := self.trust.keys.get(known.claims.key)) and trusted.text == known.key:
            return known.claims
        body, _, mark = token.partition(".")
        try:
            claims, signature = msgspec.json.decode(_bytes(body), type=Claims), _bytes(mark)
        except (ValueError, RecursionError, msgspec.MsgspecError):
            raise UnauthorizedError(_UNSIGNED) from None
        if not claims.key:
            raise UnauthorizedError(_OLD)
        if claims.key in self._keys:
            try:
                self._keys[claims.key].verify(signature, body.encode())
            except InvalidSignature:
                raise UnauthorizedError(_UNSIGNED) from None
            _known.add(self.trust.keys[claims.key].text, token, claims)
        return claims


class _KnownToken(msgspec.Struct, frozen=True):
    """What a token says, by the public key that it was signed with."""

    key: str
    claims: Claims


class _KnownTokens:
    """The tokens that were last signed or found right here: they stay right, and need not be read again."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[str, _KnownToken] = OrderedDict()
        self._lock = Lock()

    def add(self, key: str, token: str, claims: Claims) -> None:
        """One that is right, by a public key."""
        with self._lock:
            self._known[token] = _KnownToken(key, claims)
            if len(self._known) > self._most:
                self._known.popitem(last=False)

    def get(self, token: str) -> _KnownToken | None:
        """What is known of a token."""
        return self._known.get(token)


_known = _KnownTokens(_REMEMBERED)


@lru_cache(maxsize=16)
def _public(key: str) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(_bytes(key))


@lru_cache(maxsize=4)
def _public_half(secret: str) -> str:
    return _text(_private(secret).public_key().public_bytes_raw())


@lru_cache(maxsize=4)
def _private(secret: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(_bytes(secret))


def claims(name: str, role: Role, expires: float, groups: Groups = ()) -> Claims:
    """Claims with names that are some; any other is an InvalidError."""
    checked = (_check_text(group, "group") for group in groups)
    return Claims(_check_text(name, "name"), role, expires, tuple(sorted(set(checked))))


def _check_text(text: str, what: str) -> str:
    try:
        return msgspec.convert(text, SubscriberName)
    except msgspec.ValidationError:
        raise InvalidError(
            f"{text[:128]!r} is no {what}: up to 128 letters, digits and . _ : @ -, first a letter or digit"
        ) from None


def expiry(token: str) -> float | None:
    """When a token says it ends, for whoever holds it: who signed it is not looked at. None for what is no token."""
    try:
        return msgspec.json.decode(_bytes(token.partition(".")[0]), type=Claims).expires
    except (ValueError, msgspec.MsgspecError):
        return None


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
