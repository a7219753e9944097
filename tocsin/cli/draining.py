"""Waiting until a broker is empty."""

from __future__ import annotations

import time
from typing import Final

from tocsin.cli import messages
from tocsin.cli.connection import Server
from tocsin.cli.network import status_of

_LOOK_SECONDS: Final = 0.5


def wait_empty(server: Server, broker: str) -> None:
    """Returns when nobody is on a broker any more, and says meanwhile how many are."""
    with messages.status("") as line:
        while left := _left(server, broker):
            line.update(f"{left:,} subscribers are still there")
            time.sleep(_LOOK_SECONDS)


def _left(server: Server, broker: str) -> int:
    return sum(each.subscribers for each in status_of(server).brokers if each.name == broker)
