"""A coordinator's plan as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean, pstdev

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tocsin.balance.model.units import rate
from tocsin.coordinator.answers import Proposal, ProposedChange


def render(answer: bytes, *, carried_out: bool) -> Iterator[RenderableType]:
    """The lines and the table of a plan."""
    proposal = msgspec.json.decode(answer, type=Proposal)
    yield Text(f"{proposal.stage}: {proposal.reason}")
    yield from (Text(f"not taken: {reason}") for reason in proposal.refused)
    if not proposal.moves:
        yield Text("Nobody is moved.")
        return
    yield from (Text(), _table(proposal.brokers), Text())
    yield from map(Text, proposal.sentences)
    moved = f"{proposal.moves:,} {'subscriber' if proposal.moves == 1 else 'subscribers'}"
    if carried_out:
        yield Text(f"{moved} will be moved; 'tocsin top' shows how far it is.")
    else:
        yield Text(f"{moved} would be moved; 'tocsin balance apply' does it.")


def _table(brokers: list[ProposedChange]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("broker")
    for heading in ("load before", "after", "leave", "come"):
        table.add_column(heading, justify="right")
    for line in brokers:
        table.add_row(Text(line.broker), rate(line.before), rate(line.after), f"{line.left:,}", f"{line.came:,}")
    before, after = [line.before for line in brokers], [line.after for line in brokers]
    table.add_section()
    table.add_row("mean", rate(fmean(before)), rate(fmean(after)))
    table.add_row("highest", rate(max(before)), rate(max(after)))
    table.add_row("cov", f"{_cov(before):.3f}", f"{_cov(after):.3f}")
    return table


def _cov(loads: list[float]) -> float:
    """Standard deviation ÷ mean, as the coordinator counts it."""
    mean = fmean(loads)
    return pstdev(loads) / mean if mean else 0.0
