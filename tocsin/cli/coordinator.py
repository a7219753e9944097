"""``tocsin coordinator``: the coordinator and its server."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin import log
from tocsin.cli import invocation, messages
from tocsin.settings.secrets import secrets


def coordinator(
    context: typer.Context,
    demo_token: Annotated[
        bool,
        typer.Option("--demo-token", help="Accept the token 'demo' of operators and brokers, on this machine only"),
    ] = False,
) -> None:
    """Run the coordinator until it is told to stop (Ctrl-C, SIGTERM)."""
    import asyncio

    import uvloop

    from tocsin.coordinator.server.serve import run

    settings = invocation(context).settings
    log.configure(settings.log.level, settings.log.format, secrets=secrets(settings))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(settings.coordinator, demo=demo_token, listening=_say))


def _say(url: str) -> None:
    messages.print(f"The coordinator listens on {url}", soft_wrap=True)
