"""The coordinator's keys, and which tokens were withdrawn: kept in its store, and changed there by ``tocsin token``."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tocsin.coordinator.tokens import Claims, SigningKey
from tocsin.model.trust import PublicKey, Trust


class Keyring(msgspec.Struct, frozen=True):
    """The last of ``keys`` signs; those before it are still taken until their time has come.

    Args:
        withdrawn: ids of single tokens that are not taken any more.
        series: by name, which series of tokens is signed; those of earlier ones are not taken any more.
        longest: until when tokens may be good that were signed beside the coordinator for longer than it does.
        names: how many names were registered beside the coordinator, so that it notices one more.
    """

    keys: tuple[SigningKey, ...]
    withdrawn: frozenset[str] = frozenset()
    series: dict[str, int] = {}
    names: int = 0
    longest: float = 0.0

    @classmethod
    def new(cls) -> Keyring:
        """One with a key of its own."""
        return cls((SigningKey.new(),))

    @property
    def signing(self) -> SigningKey:
        """The key that signs."""
        return self.keys[-1]

    @property
    def trust(self) -> Trust:
        """What those may know who check tokens."""
        keys = {key.id: PublicKey(key.public, key.until) for key in self.keys}
        return Trust(keys, self.withdrawn, self.series)

    def at(self, now: float) -> Keyring:
        """Without the keys whose time has come."""
        kept = tuple(key for key in self.keys if key.until is None or key.until > now)
        return self if len(kept) == len(self.keys) else replace(self, keys=kept)

    def rotate(self, now: float, until: float) -> Keyring:
        """With a new key; what the one before has signed is taken until ``until``. Keys whose time has come are gone.

        If nothing of what was signed so far is taken any more, nothing needs to stay withdrawn.
        """
        ending = [replace(key, until=until if key.until is None else min(key.until, until)) for key in self.keys]
        kept = replace(self, keys=(*ending, SigningKey.new())).at(now)
        return kept if len(kept.keys) > 1 else Keyring(kept.keys, names=self.names, longest=self.longest)

    def without(self, token: str) -> Keyring:
        """With one token, by its id, withdrawn."""
        return replace(self, withdrawn=self.withdrawn | {token})

    def without_name(self, name: str) -> Keyring:
        """With all tokens of a name withdrawn that were signed so far."""
        return replace(self, series={**self.series, name: self.series.get(name, 0) + 1})

    def lasting(self, expires: float) -> Keyring:
        """With a token signed that is good until then."""
        return replace(self, longest=max(self.longest, expires))

    def sign(self, claims: Claims) -> str:
        """A token for these claims, of its name's present series."""
        return self.signing.sign(replace(claims, series=self.series.get(claims.name, 0)))
