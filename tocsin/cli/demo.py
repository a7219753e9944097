"""``tocsin demo``: the emergency application on a whole network of its own, in one command."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from tocsin.cli import invocation, output
from tocsin.cli.up import flags
from tocsin.errors import TocsinError

_WIDTH: Final = 120
INTERRUPTED: Final = 130


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
    hosts: Annotated[
        bool,
        typer.Option(
            "--hosts",
            help="Each part on a host of its own, on a Spark cluster; Kafka, PostgreSQL and S3 if there; as root",
        ),
    ] = False,
) -> None:
    """Watch the emergency application at work: a seeded city, and a network of brokers that balances itself.

    Starts a data cluster, a coordinator and brokers on free ports of this machine. People with subscriptions of their
    own move about, and are told of what happens near them and of what they asked for.
    """
    import asyncio

    from tocsin.apps.emergency.ground import ground
    from tocsin.crowd.plan import CrowdPlan
    from tocsin.demo.network import network
    from tocsin.demo.performance import perform, perform_on_hosts
    from tocsin.local.network import occupy, refuse_tls

    asked = invocation(context)
    # A file that cannot be read is found out before anything starts, or is left behind.
    land = ground(seed, None if trace else people, roads, trace)
    plan = CrowdPlan("", "", people, seed, _name(trace), _name(roads))
    with kept_directory(keep) as directory, occupy(directory, "--keep"):
        try:
            if hosts:
                refuse_tls(asked.settings)
                perform_on_hosts(directory.absolute(), plan, brokers, flags(asked), land, seconds, wide_console())
            else:
                net = network(asked.settings, directory.absolute(), brokers, flags(asked), land)
                asyncio.run(perform(net, plan, seconds, wide_console()))
        except asyncio.CancelledError:
            raise typer.Exit(INTERRUPTED) from None
    if keep:
        output.print(f"The data are kept in {keep}, with the logs in {keep / 'log'}.", soft_wrap=True)


def _name(path: Path | None) -> str | None:
    return str(path.absolute()) if path else None


@contextmanager
def kept_directory(keep: Path | None) -> Iterator[Path]:
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


def wide_console() -> Console:
    """Standard output; where that is no terminal, wide enough for the tables."""
    return output if output.is_terminal else Console(highlight=False, width=_WIDTH)
