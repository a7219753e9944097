"""``tocsin broker``: one broker."""

from __future__ import annotations

import typer

from tocsin import log
from tocsin.cli import invocation, messages
from tocsin.settings.secrets import secrets


def broker(context: typer.Context) -> None:
    """Run a broker until it is told to stop (Ctrl-C, SIGTERM)."""
    import asyncio

    import uvloop

    from tocsin.broker.server.serve import run

    settings = invocation(context).settings
    log.configure(settings.log.level, settings.log.format, secrets=secrets(settings))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(settings.broker, ca=settings.tls.ca, listening=_say))


def _say(url: str) -> None:
    messages.print(f"The broker listens on {url}", soft_wrap=True)
