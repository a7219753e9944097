"""Which signed tokens are taken: public keys, and what was withdrawn.

The coordinator tells its brokers, and whoever holds a connection open by a token that is no longer taken ends it.
"""

from __future__ import annotations

import msgspec


class PublicKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key that verifies and cannot sign, as base64url; what it signed is taken until ``until``, if that is said."""

    text: str
    until: float | None = None


class Trust(msgspec.Struct, frozen=True):
    """Tokens are taken that were signed with one of ``keys``, by id, and not withdrawn since.

    Args:
        withdrawn: ids of single tokens that are not taken.
        series: by name, tokens of an earlier series are not taken. Without clocks, so that none can be wrong.
    """

    keys: dict[str, PublicKey] = {}
    withdrawn: frozenset[str] = frozenset()
    series: dict[str, int] = {}

    def fault(self, *, name: str, token: str, key: str, series: int) -> str | None:
        """Why a token of ``name`` with these is not taken; None when it is, as far as these go."""
        if key not in self.keys:
            return f"the token of {name} was signed with a key that is not in use here: ask the coordinator for one"
        if token in self.withdrawn or series < self.series.get(name, 0):
            return f"the token of {name} was withdrawn: ask the coordinator for a new one"
        return None
