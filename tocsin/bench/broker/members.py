"""Ten thousand connected subscribers with five subscriptions each: what one costs in memory, and how fast they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

from tocsin.bench.broker import targets, websocket
from tocsin.bench.broker.contestant import Cores
from tocsin.bench.broker.feeder import CHANNEL, Feeder
from tocsin.bench.broker.network import TOKEN, network
from tocsin.bench.broker.payloads import payload
from tocsin.bench.broker.registration import register
from tocsin.bench.broker.sockets import Sockets
from tocsin.bench.broker.subscriber import subscriber
from tocsin.bench.report import Figure

_EACH: Final = 5
_KINDS: Final = 1000
"""Different subscriptions there are; each is held by as many as the others."""


def members(directory: Path, cores: Cores, subscribers: int, say: Callable[[str], None]) -> Iterator[Figure]:
    """All come at once, as after a broker's restart."""
    with ExitStack() as stack:
        sockets = stack.enter_context(closing(Sockets()))
        feeder = Feeder(sockets, payload)
        net = stack.enter_context(network(directory, feeder.url, ["bench"], cores, lambda: sockets.attend(0.05)))
        empty = net.memory("bench")
        say(f"registering {subscribers:,} subscribers")
        places = register(sockets, net.coordinator, TOKEN, [f"s{number}" for number in range(subscribers)])
        say(f"logging in {subscribers:,} subscribers with {_EACH} subscriptions each")
        scripts = [
            subscriber(place.url, place.token, CHANNEL, _kinds_of(number)) for number, place in enumerate(places)
        ]
        began = time.perf_counter()
        sockets.open(websocket.address(places[0].url), scripts)
        seconds = time.perf_counter() - began
        each = (net.memory("bench") - empty) / subscribers / 1024
    group = f"{subscribers:,} subscribers with {_EACH} subscriptions each"
    rate, least, most = subscribers * (1 + _EACH) / seconds, targets.LOGINS, targets.KIBIBYTES
    yield Figure(group, "memory of each", each, "KiB", target=f"at most {most:g} KiB", met=each <= most)
    said = f"at least {least:g}/s"
    yield Figure(group, "logins and subscriptions", rate, "requests/s", target=said, met=rate >= least)
    yield Figure(group, "subscribers that came", subscribers / seconds, "subscribers/s")


def _kinds_of(number: int) -> list[dict[str, int]]:
    return [{"kind": (number * _EACH + one) % _KINDS} for one in range(_EACH)]
