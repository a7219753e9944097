"""Ports for servers that keep theirs through restarts."""

from __future__ import annotations

import random
import socket
from typing import Final

# Below those that the system gives to whoever connects somewhere: such a one may be taken while its server is down.
_FIRST, _LAST = 20_000, 32_767
_TRIES: Final = 100
# Not seeded: processes of a test run that choose at the same time had better choose differently.
_chance = random.SystemRandom()


def free_port() -> int:
    """A port of this machine that nothing listens on, and that nobody else is given by the system."""
    for _ in range(_TRIES):
        port = _chance.randint(_FIRST, _LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no port from {_FIRST} to {_LAST} is free, after {_TRIES} tries")
