"""Waiting until a broker is empty."""

from __future__ import annotations

import time
from typing import Final

from tocsin.cli import messages
from tocsin.cli.connection import RemoteServer
from tocsin.cli.network import status_of
from tocsin.cli.waiting import Reasons
from tocsin.coordinator.answers import NetworkStatus

_LOOK_SECONDS: Final = 0.5
_OPEN: Final = ("serving", "joining")
_UNTIL: Final = "this waits until all are gone; Ctrl-C ends the waiting, not the emptying"


def wait_empty(server: RemoteServer, broker: str) -> None:
    """Returns when nobody is on a broker any more, and says meanwhile how many are, and why they stay."""
    reasons = Reasons()
    with messages.status("") as line:
        while left := _count_left(status := status_of(server), broker):
            line.update(f"{left:,} subscribers are still there")
            if _refuges(status, broker):
                reasons.say(f"waiting for the subscribers of {broker} to move: {left:,} are still there", _UNTIL)
            else:
                reasons.say(f"there is no other broker that {broker}'s {left:,} subscribers could go to", _UNTIL)
            time.sleep(_LOOK_SECONDS)


def _count_left(status: NetworkStatus, broker: str) -> int:
    return sum(each.subscribers for each in status.brokers if each.name == broker)


def _refuges(status: NetworkStatus, broker: str) -> list[str]:
    return [each.name for each in status.brokers if each.name != broker and each.state in _OPEN]
