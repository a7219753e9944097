"""The brokers at a glance: a line for each with a bar as long as its load, and how evenly they are loaded."""

from __future__ import annotations

from collections import Counter
from typing import Final

from rich.table import Table
from rich.text import Text

from tocsin.coordinator.answers import BrokerSummary, NetworkStatus
from tocsin.model.slices import FeedSlices

_BAR: Final = 32
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


class Board:
    """Draws the status of the network. Bars are as long as the highest load so far asks for, so that one sees it fall.

    ``places`` says in a few words where each broker is.
    """

    def __init__(self, places: dict[str, str]) -> None:
        self._places = places
        self._highest = 1.0

    def table(self, status: NetworkStatus) -> Table:
        """A line for each broker."""
        self._highest = max(self._highest, *(broker.load for broker in status.brokers))
        table = Table(box=None, header_style="dim", pad_edge=False)
        for heading in ("broker", "where", ""):
            table.add_column(heading, no_wrap=True)
        for heading in ("load kB/s", "in", "out", "people"):
            table.add_column(heading, justify="right", no_wrap=True)
        order = list(self._places)
        for broker in sorted(status.brokers, key=lambda broker: order.index(broker.name)):
            table.add_row(*self._row(broker, status))
        return table

    def _row(self, broker: BrokerSummary, status: NetworkStatus) -> list[Text]:
        style = "red" if broker.load > 1.25 * status.mean else "green"
        rates = (broker.load, broker.incoming, broker.outgoing)
        return [
            Text(broker.name, style="bold"),
            Text(self._places[broker.name], style="dim"),
            Text(bar(broker.load / self._highest), style=style),
            *(Text(kilo(rate)) for rate in rates),
            Text(str(broker.subscribers)),
        ]


def evenness(status: NetworkStatus) -> str:
    """How evenly the brokers are loaded, in one line."""
    if not status.mean:
        return "nothing delivered yet"
    times = status.highest / status.mean
    return f"cov {status.cov:.2f}, highest load {kilo(status.highest)} kB/s = {times:.2f} × the mean"


def shares(feed: FeedSlices) -> str:
    """How many slices of a feed each node has, in one line."""
    owners = Counter(one.owner or "nobody" for one in feed.slices)
    return f"slices of {feed.feed}: {', '.join(f'{owners[name]} at {name}' for name in sorted(owners))}"


def bar(part: float) -> str:
    """A bar of that part of the whole width, padded to it."""
    eighths = round(max(min(part, 1.0), 0.0) * _BAR * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + _EIGHTHS[rest].strip()).ljust(_BAR)


def kilo(rate: float) -> str:
    """Thousands, with one digit after the point."""
    return f"{rate / 1000:,.1f}"
