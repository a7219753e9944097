"""The network as operators see it: the coordinator's status, who is slow on which broker, and when one is empty."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tocsin.balance.model.units import rate
from tocsin.cli import messages
from tocsin.cli.connection import RemoteServer
from tocsin.cli.waiting import Reasons
from tocsin.client.operator import ServerCalls
from tocsin.coordinator.answers import BrokerSummary, NetworkStatus
from tocsin.errors import TocsinError, UnavailableError

_BROKER_SECONDS: Final = 1.0
_AT_A_TIME: Final = 16
_LOOK_SECONDS: Final = 0.5
_OPEN: Final = ("serving", "joining")
_UNTIL: Final = "this waits until all are gone; Ctrl-C ends the waiting, not the emptying"
_STYLES: Final = {"dead": "bold red", "away": "yellow", "draining": "cyan", "joining": "green"}


class SlowSubscribers(msgspec.Struct, frozen=True):
    """Who does not keep up on a broker: some names, and how many there are."""

    slow_count: int
    slow: list[str]


@dataclass(frozen=True)
class NetworkView:
    """All that is shown. A broker missing from ``slow`` did not say who is."""

    status: NetworkStatus
    slow: dict[str, SlowSubscribers]


def look(server: RemoteServer, token: str | None) -> NetworkView:
    """How things stand. A broker that does not answer soon is left out of ``slow``."""
    status = status_of(server)
    connected = [broker for broker in status.brokers if broker.state not in ("dead", "away")]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        found = zip(connected, pool.map(lambda broker: _slow(broker, token, server.ca), connected), strict=True)
        return NetworkView(status, {broker.name: slow for broker, slow in found if slow is not None})


def status_of(server: RemoteServer) -> NetworkStatus:
    """How things stand, as a coordinator says; what answers otherwise is none, and an UnavailableError."""
    try:
        return msgspec.json.decode(server.get("/status"), type=NetworkStatus)
    except msgspec.DecodeError:
        raise UnavailableError(
            f"{server.url} answers, but not as a coordinator does; {server.option} names another"
        ) from None


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


def _slow(broker: BrokerSummary, token: str | None, ca: str) -> SlowSubscribers | None:
    try:
        with ServerCalls(status_url(broker.url), token, seconds=_BROKER_SECONDS, ca=ca, proxied=True) as calls:
            return calls.ask(SlowSubscribers, "GET", "")
    except (TocsinError, ValueError):
        return None


def status_url(url: str) -> str:
    """Where a broker tells operators how it is, given where its subscribers go."""
    parts = urlsplit(url)
    scheme = "https" if parts.scheme in ("wss", "https") else "http"
    return f"{scheme}://{parts.netloc}{parts.path.rpartition('/')[0]}/status"


def screen(network: NetworkView) -> RenderableType:
    """What is shown of it."""
    problems = [Text(problem, style="red") for problem in network.status.problems]
    return Group(_brokers(network), Text(), *_summary(network.status), *problems, *_slow_lines(network))


def _brokers(network: NetworkView) -> RenderableType:
    if not network.status.brokers:
        return Text("no brokers yet; 'tocsin broker' starts one")
    table = Table(box=None, header_style="bold", pad_edge=False)
    # What cannot be told apart when it is cut off, however narrow the terminal.
    table.add_column("broker", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for heading in ("subscribers", "online", "slow", "load", "incoming", "outgoing", "off"):
        table.add_column(heading, justify="right")
    for broker in network.status.brokers:
        slow = network.slow.get(broker.name)
        table.add_row(
            Text(broker.name),
            Text(broker.state, style=_STYLES.get(broker.state, "")),
            f"{broker.subscribers:,}",
            f"{broker.online:,}",
            "?" if slow is None else f"{slow.slow_count:,}",
            rate(broker.load),
            rate(broker.incoming),
            rate(broker.outgoing),
            f"{broker.deviation:+.0%}",
        )
    return table


def _summary(status: NetworkStatus) -> Iterator[Text]:
    yield Text(f"cov {status.cov:.3f}   highest {rate(status.highest)}   mean {rate(status.mean)}")
    yield Text(
        f"{status.subscribers:,} subscribers   {status.moving:,} moving   {status.waiting:,} waiting to move   "
        f"{status.moved:,} moved   {status.homeless:,} without a broker"
    )
    yield Text(f"balancing is {'on' if status.balancing else 'off'}; {status.decision}")


def _slow_lines(network: NetworkView) -> Iterator[Text]:
    for broker, slow in network.slow.items():
        if slow.slow:
            more = f" and {slow.slow_count - 5:,} more" if slow.slow_count > 5 else ""
            yield Text(f"slow on {broker}: {', '.join(slow.slow[:5])}{more}", style="yellow")
