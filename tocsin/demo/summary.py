"""The end of the demo: what balancing did, and whether everybody got what was for them."""

from __future__ import annotations

from typing import Final

from rich.table import Table
from rich.text import Text

from tocsin.coordinator.answers import NetworkStatus
from tocsin.crowd.delays import within
from tocsin.crowd.messages import Compared, CrowdFigures
from tocsin.crowd.shortfall import Strain, generator, shortfall
from tocsin.demo.board import kilo

_MOST_MISSED: Final = 5


def balance(before: NetworkStatus, after: NetworkStatus) -> Table:
    """The loads before balancing and in the end."""
    table = Table("", "before balancing", "in the end", box=None, header_style="bold", pad_edge=False)
    table.add_row("cov of the brokers' loads", f"{before.cov:.2f}", f"{after.cov:.2f}")
    table.add_row("highest load", _highest(before), _highest(after))
    table.add_row("people on the fullest broker", *(str(_fullest(status)) for status in (before, after)))
    return table


def delivery(second: int, figures: CrowdFigures, compared: Compared) -> list[Text]:
    """What was published and delivered, in sentences."""
    published = figures.published
    said = [
        f"In {second} s: {published.get('reports', 0):,} reports and {published.get('locations', 0):,} locations "
        f"published, {compared.delivered:,} notifications delivered ({figures.bytes / 1e6:,.1f} MB).",
        f"Of what the data cluster had found for somebody: {compared.lost:,} lost, "
        f"{figures.duplicates:,} delivered twice, {figures.disordered:,} out of order; "
        f"{figures.moved:,} moves between brokers meanwhile.",
        f"From the acknowledged report to the person: half within {within(figures.waits, 0.5):.1f} s, 95 % within "
        f"{within(figures.waits, 0.95):.1f} s (channels run every 10 to 30 s).",
    ]
    said += [
        f"{one.who} has not got what executions {', '.join(map(str, one.executions))} found for subscription "
        f"{one.subscription}."
        for one in compared.missed[:_MOST_MISSED]
    ]
    if compared.absent:
        said.append(f"{compared.absent:,} people were not connected at the end; nothing above is about them.")
    if figures.lost_connections:
        said.append(f"Connections lost and made again: {figures.lost_connections:,}.")
    return [Text(sentence) for sentence in said]


def effort(figures: CrowdFigures, processes: int, missing: int, strain: Strain) -> list[Text]:
    """How the load generator and the machine did: whether what was measured can be blamed on the system."""
    gone = f"{missing:,} people were lost with the processes that played them; nothing above is about them."
    warnings = [gone if missing else "", shortfall(figures, strain)]
    said = [Text(warning, style="bold red") for warning in warnings if warning]
    return [Text(generator(figures, processes), style="dim"), *said]


def _highest(status: NetworkStatus) -> str:
    return f"{status.highest / status.mean if status.mean else 0:.2f} × the mean ({kilo(status.highest)} kB/s)"


def _fullest(status: NetworkStatus) -> int:
    return max(broker.subscribers for broker in status.brokers)
