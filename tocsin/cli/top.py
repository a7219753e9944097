"""``tocsin top``: the network at a glance, as it changes."""

from __future__ import annotations

import time
from typing import Annotated, Final

import typer

from tocsin.cli import invocation, output
from tocsin.cli.connection import CoordinatorOption, RemoteCoordinator, TokenOption, connect_coordinator
from tocsin.errors import BusyError, UnavailableError

_REFRESH_SECONDS: Final = 1.0


def top(
    context: typer.Context,
    once: Annotated[
        bool, typer.Option("--once", help="Print it once and return, as when the output is no terminal.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the coordinator's status once, as one JSON object.")
    ] = False,
    coordinator: CoordinatorOption = None,
    token: TokenOption = None,
) -> None:
    """Show brokers, loads, subscribers and moves, every second until Ctrl-C."""
    with connect_coordinator(invocation(context).settings, coordinator, token) as server:
        if json:
            typer.echo(server.get("/status").decode())
        elif once or not output.is_terminal:
            from tocsin.cli.network import look, screen

            output.print(screen(look(server, token)))
        else:
            _watch(server, token)


def _watch(server: RemoteCoordinator, token: str | None) -> None:
    from rich.console import Group, RenderableType
    from rich.live import Live
    from rich.text import Text

    from tocsin.cli.network import look, screen

    shown: RenderableType = screen(look(server, token))
    with Live(shown, console=output, screen=True, auto_refresh=False) as live:
        while True:
            began = time.monotonic()
            try:
                shown = screen(look(server, token))
                live.update(shown, refresh=True)
            except (UnavailableError, BusyError) as error:
                # A coordinator that is restarted is watched on; brokers deliver without it.
                live.update(Group(Text(str(error), style="red"), shown), refresh=True)
            time.sleep(max(0.0, began + _REFRESH_SECONDS - time.monotonic()))
