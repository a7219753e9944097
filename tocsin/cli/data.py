"""``tocsin data``: the data cluster and its server."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from tocsin import log
from tocsin.cli import invocation, messages
from tocsin.errors import SparkEndedError
from tocsin.settings import Settings
from tocsin.settings.secrets import secrets


def data(
    context: typer.Context,
    demo_token: Annotated[
        bool, typer.Option("--demo-token", help="Accept the token 'demo' for everything, from this machine only")
    ] = False,
) -> None:
    """Run the data cluster until it is told to stop (Ctrl-C, SIGTERM)."""
    import asyncio

    import uvloop

    settings = invocation(context).settings
    log.configure(settings.log.level, settings.log.format, secrets=secrets(settings))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(settings, demo_token))


async def _run(settings: Settings, demo: bool) -> None:
    from tocsin.data.cluster import Cluster
    from tocsin.data.server.serve import bind, run
    from tocsin.data.store import Store
    from tocsin.http.demo import DEMO_TOKEN, check_demo
    from tocsin.tasks import until_one_ends

    if demo:
        check_demo("data", settings.data.host)
    # A port that is taken is found out before Spark starts. Tokens are looked up on a connection of their own, which
    # never waits for the cluster's work on the store.
    with bind(settings) as listener, Store(settings.data.directory) as store:
        cluster = Cluster(settings)
        await cluster.start()
        token = DEMO_TOKEN if demo else None
        serving = run(cluster, store.tokens, settings, demo_token=token, listener=listener, listening=_say)
        try:
            await until_one_ends(serving, cluster.wait_for_breakdown())
        except SparkEndedError as error:
            _give_up(error)
        finally:
            await cluster.stop()


def _give_up(error: SparkEndedError) -> None:
    """Ends as a crash does: without Spark nothing can be ended in order, and the next start needs no order."""
    messages.print(f"error: {error}", soft_wrap=True)
    os._exit(1)


def _say(url: str) -> None:
    messages.print(f"The data cluster listens on {url} (its calls: {url}/docs)", soft_wrap=True)
