"""``tocsin overlay demo``: stock alerts on an overlay of its own, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli import invocation, output
from tocsin.errors import InvalidError

if TYPE_CHECKING:
    from tocsin.demo.stocks.play import StockPlan
    from tocsin.local.overlay import LocalOverlay


def demo(
    context: typer.Context,
    seconds: Annotated[
        int | None, typer.Option("--seconds", min=1, help="Publish for so long, then end; else until Ctrl-C")
    ] = None,
    people: Annotated[int, typer.Option("--people", min=1, max=5000, help="How many people have alerts")] = 200,
    edges: Annotated[int, typer.Option("--edges", min=1, max=50, help="How many edges")] = 4,
    heads: Annotated[int, typer.Option("--heads", min=1, max=10, help="How many heads, in a chain")] = 1,
    rate: Annotated[float, typer.Option("--rate", min=1, max=1000, help="Stock quotes per second")] = 40.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same quotes and alerts")] = 7,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep data and logs there; else they are removed")
    ] = None,
) -> None:
    """Watch stock alerts on an overlay of its own, which balances itself.

    Starts heads and edges on free ports of this machine. Everybody comes to the first edge, with an alert on stock
    quotes; in the end it is checked that everybody was told what they asked for, once and in order.
    """
    import asyncio

    from tocsin.cli.demo import INTERRUPTED, kept_directory
    from tocsin.cli.up import flags
    from tocsin.demo.stocks.play import QUICKLY, StockPlan, edge_settings
    from tocsin.local.network import occupy
    from tocsin.local.overlay import LocalOverlay

    plan = StockPlan(people, rate, seed)
    if keep and keep.is_dir() and any(keep.iterdir()):
        raise InvalidError(f"{keep} is not empty, and the demo begins with empty logs; choose another with --keep")
    with kept_directory(keep) as directory, occupy(directory, "--keep"):
        asked = invocation(context)
        local = LocalOverlay(directory.absolute(), heads, edges, flags(asked), QUICKLY, edge_settings(plan, edges))
        try:
            asyncio.run(_play(local, plan, seconds))
        except asyncio.CancelledError:
            raise typer.Exit(INTERRUPTED) from None
    if keep:
        output.print(f"The data are kept in {keep}, with the logs in {keep / 'log'}.", soft_wrap=True)


async def _play(local: LocalOverlay, plan: StockPlan, seconds: int | None) -> None:
    from tocsin.cli.demo import wide_console
    from tocsin.demo.stocks.play import StockPlay, bandwidths
    from tocsin.demo.stocks.screen import StockScreen
    from tocsin.local.running import Running
    from tocsin.local.signals import until_told

    screen = StockScreen(wide_console(), dict(zip(local.edge_names, bandwidths(plan, local.edges), strict=True)))
    screen.introduce(plan.people, local.heads)
    with until_told() as ended:
        play = StockPlay(local, plan, screen, ended)
        await Running(local, screen).run(ended, lambda: play.run(seconds))
