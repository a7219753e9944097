"""``tocsin up``: a whole Tocsin on this machine, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tocsin.cli import Invocation, invocation, output
from tocsin.errors import InvalidError, StatementError

if TYPE_CHECKING:
    from tocsin.local.network import LocalNetwork

_DIRECTORY: Final = Path("tocsin-up")
_INTERRUPTED: Final = 130


def up(
    context: typer.Context,
    brokers: Annotated[int, typer.Option("--brokers", min=1, max=100, help="How many brokers")] = 3,
    app: Annotated[
        Path | None,
        typer.Option("--app", metavar="FILE", help="The application; else the emergency one, if there is none yet"),
    ] = None,
    directory: Annotated[
        Path, typer.Option("--directory", metavar="DIR", help="Where state and logs are; up again goes on from there")
    ] = _DIRECTORY,
) -> None:
    """Run everything on this machine until Ctrl-C: a data cluster, a coordinator and brokers.

    They take the token 'demo', and are reached from this machine only.
    """
    import asyncio

    from tocsin.local.network import LocalNetwork, occupy

    asked = invocation(context)
    if app:
        _check(app)
    network = LocalNetwork(asked.settings, directory.absolute(), brokers, flags(asked))
    with occupy(directory):
        # A port that is taken is found out before anything starts.
        network.choose_ports()
        try:
            asyncio.run(_run(context, network, app))
        except asyncio.CancelledError:
            raise typer.Exit(_INTERRUPTED) from None


def flags(asked: Invocation) -> list[str]:
    """The options of an invocation, to be given to the processes it starts."""
    config = [f"--config={asked.config}"] if asked.config else []
    return [*config, *(f"--set={override}" for override in asked.overrides)]


async def _run(context: typer.Context, network: LocalNetwork, app: Path | None) -> None:
    from tocsin.cli.welcome import WelcomeScreen
    from tocsin.local.running import Running
    from tocsin.local.screen import NetworkScreen
    from tocsin.local.signals import until_told

    screen = NetworkScreen(output)
    welcome = WelcomeScreen(context, network, screen, app)
    with until_told() as ended:
        await Running(network, screen).run(ended, lambda: welcome.give(ended))


def _check(app: Path) -> None:
    """Raises, before anything is started, when the file or one of its statements cannot be read."""
    from tocsin.cli.apply import read
    from tocsin.cli.parts import parts

    try:
        parts(read(app))
    except StatementError as error:
        raise InvalidError(f"{app}: {error}") from None
