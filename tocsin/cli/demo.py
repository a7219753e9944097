"""``tocsin demo``: the emergency application on a whole network of its own, in one command."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from tocsin.cli import invocation, output
from tocsin.cli.up import flags
from tocsin.errors import TocsinError

if TYPE_CHECKING:
    from tocsin.crowd.plan import CrowdPlan
    from tocsin.local.network import LocalNetwork

_WIDTH: Final = 120
_INTERRUPTED: Final = 130


def demo(
    context: typer.Context,
    seconds: Annotated[
        int | None, typer.Option("--seconds", min=1, help="Let them live for so long, then end; else until Ctrl-C")
    ] = None,
    people: Annotated[int, typer.Option("--people", min=1, max=20_000, help="How many people move about")] = 400,
    brokers: Annotated[int, typer.Option("--brokers", min=1, max=100, help="How many brokers")] = 5,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same city")] = 7,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE", help="Recorded movement (Parquet: t, node, x, y) instead of seeded"),
    ] = None,
    roads: Annotated[
        Path | None,
        typer.Option("--roads", metavar="FILE", help="A road map (WKT: LINESTRINGs) instead of a seeded one"),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep data and logs there; else they are removed")
    ] = None,
) -> None:
    """Watch the emergency application at work: a seeded city, and a network of brokers that balances itself.

    Starts a data cluster, a coordinator and brokers on free ports of this machine. People with subscriptions of their
    own move about, and are told of what happens near them and of what they asked for.
    """
    import asyncio

    from tocsin.apps.emergency.ground import ground
    from tocsin.crowd.plan import CrowdPlan
    from tocsin.demo import network
    from tocsin.local.network import COORDINATOR, DATA, occupy

    asked = invocation(context)
    with _directory(keep) as directory, occupy(directory, "--keep"):
        # A file that cannot be read is found out before anything starts.
        land = ground(seed, None if trace else people, roads, trace)
        net = network.network(asked.settings, directory.absolute(), brokers, flags(asked), land)
        plan = CrowdPlan(net.url(COORDINATOR), net.url(DATA), people, seed, _name(trace), _name(roads))
        try:
            asyncio.run(_run(net, plan, seconds))
        except asyncio.CancelledError:
            raise typer.Exit(_INTERRUPTED) from None
    if keep:
        output.print(f"The data are kept in {keep}, with the logs in {keep / 'log'}.", soft_wrap=True)


def _name(path: Path | None) -> str | None:
    return str(path.absolute()) if path else None


@contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    """A directory that is removed in the end, unless it is to be kept or something went wrong."""
    if keep:
        yield keep
        return
    import shutil

    directory = Path(tempfile.mkdtemp(prefix="tocsin-demo-"))
    try:
        yield directory
    except TocsinError:
        output.print(f"The data and logs are left in {directory}", soft_wrap=True)
        raise
    shutil.rmtree(directory, ignore_errors=True)


async def _run(net: LocalNetwork, plan: CrowdPlan, seconds: int | None) -> None:
    from datetime import UTC, datetime

    from tocsin.client.operator import Operator
    from tocsin.crowd.crowd import crowd
    from tocsin.demo.board import Board
    from tocsin.demo.network import whereabouts
    from tocsin.demo.play import Play, create
    from tocsin.demo.screen import DemoScreen
    from tocsin.local.network import TOKEN
    from tocsin.local.running import Running
    from tocsin.local.signals import until_told

    screen = DemoScreen(_console(), Board(whereabouts(net)))
    world = plan.world(datetime.now(UTC))
    screen.introduce(len(world.subscribers), net.brokers)

    with until_told() as ended:

        async def perform() -> None:
            async with Operator(plan.data, plan.coordinator, TOKEN) as operator:
                await create(operator, world, screen)
                play = Play(operator, screen, ended)
                async with crowd(plan, len(world.subscribers), net.directory / "log", play.hear) as people:
                    await play.run(people, seconds)

        await Running(net, screen).run(ended, perform)


def _console() -> Console:
    """Standard output; where that is no terminal, wide enough for the tables."""
    return output if output.is_terminal else Console(highlight=False, width=_WIDTH)
