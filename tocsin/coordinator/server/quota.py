"""How many names strangers may register: so many an hour from one address, and so many in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from tocsin.errors import BusyError

_HOUR: Final = 3600.0
# Addresses that have not been heard of for an hour are forgotten once there are so many.
_MOST_ADDRESSES: Final = 10_000
# Whoever has one address of version 6 has a whole network of this size.
_NETWORK_BITS: Final = 64


@dataclass
class _Bucket:
    """What is left of an hour's share, which fills up again little by little."""

    left: float
    at: float


class Quota:
    """Counts registrations. ``each`` is for one address, ``most`` for all together, per hour."""

    def __init__(self, each: int, most: int, now: Callable[[], float]) -> None:
        self._each, self._most, self._now = each, most, now
        self._all = _Bucket(most, now())
        self._addresses: dict[str, _Bucket] = {}

    def take(self, address: str) -> None:
        """Counts one more from an address; BusyError, with the time to wait, when it is one too many."""
        now = self._now()
        own = self._addresses.setdefault(_network(address), _Bucket(self._each, now))
        for bucket, most, whose in ((own, self._each, "your address"), (self._all, self._most, "all addresses")):
            bucket.left, bucket.at = min(most, bucket.left + (now - bucket.at) * most / _HOUR), now
            if bucket.left < 1:
                raise BusyError(
                    f"{most} names an hour may be registered from {whose}; try again later, or ask an operator",
                    retry_after=(1 - bucket.left) * _HOUR / most,
                )
        own.left -= 1
        self._all.left -= 1
        self._forget(now)

    def _forget(self, now: float) -> None:
        if len(self._addresses) > _MOST_ADDRESSES:
            self._addresses = {name: one for name, one in self._addresses.items() if now - one.at < _HOUR}


def _network(address: str) -> str:
    """An address, or of version 6 the network that goes with it."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    if not isinstance(known, IPv6Address):
        return str(known)
    if known.ipv4_mapped:
        return str(known.ipv4_mapped)
    return str(ip_network((known, _NETWORK_BITS), strict=False))
