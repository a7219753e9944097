"""``tocsin data``: the data cluster and its server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin import log
from tocsin.cli import invocation, messages
from tocsin.errors import ConflictError, SparkEndedError, SupersededError
from tocsin.settings import Settings
from tocsin.settings.secrets import secrets

if TYPE_CHECKING:
    import socket

    from pyspark.sql import SparkSession

    from tocsin.data.store import SeenHead


def data(
    context: typer.Context,
    demo_token: Annotated[
        bool, typer.Option("--demo-token", help="Accept the token 'demo' for everything, from this machine only")
    ] = False,
    standby: Annotated[
        bool, typer.Option("--standby", help="Wait while another is the data cluster, and take over when it is gone")
    ] = False,
) -> None:
    """Run the data cluster until it is told to stop (Ctrl-C, SIGTERM)."""
    import asyncio

    import uvloop

    settings = invocation(context).settings
    log.configure(settings.log.level, settings.log.format, secrets=secrets(settings))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run_standby(settings, demo_token) if standby else _run(settings, demo_token))


async def _run(settings: Settings, demo: bool) -> None:
    from tocsin.data.server.serve import bind
    from tocsin.http.tls import tls

    _check_demo(settings, demo)
    # A port that is taken, or a certificate that cannot be read, is found out before Spark starts.
    tls("data", settings.data.tls_certificate, settings.data.tls_key)
    with bind(settings) as listener:
        await _lead(settings, demo, listener)


async def _run_standby(settings: Settings, demo: bool) -> None:
    from tocsin.data.server.serve import bind, run_standby
    from tocsin.data.standby import Standby

    _check_demo(settings, demo)
    with bind(settings) as listener, Standby(settings) as standby:
        while True:
            turn = await run_standby(settings, listener, standby.wait_for_turn(), _say_standby)
            if turn is None:
                return
            try:
                await _lead(settings, demo, listener.dup(), turn.spark, turn.silent)
            except SupersededError:
                raise
            except ConflictError as error:
                # Another one that stood by was quicker.
                messages.print(f"{error}; standing by again", soft_wrap=True)
                continue
            return


async def _lead(
    settings: Settings,
    demo: bool,
    listener: socket.socket,
    spark: SparkSession | None = None,
    silent: SeenHead | None = None,
) -> None:
    """Is the data cluster, on a session that may have been started before, until told to stop."""
    from tocsin.data.cluster import Cluster
    from tocsin.data.server.serve import run
    from tocsin.data.store import RememberedTokens, open_store
    from tocsin.http.demo import DEMO_TOKEN
    from tocsin.tasks import until_one_ends

    # Tokens are looked up on a connection of their own, which never waits for the cluster's work on the store; those in
    # a database are remembered.
    with open_store(settings.data) as store:
        cluster = Cluster(settings, spark, keep_spark=False, silent=silent)
        await cluster.start()
        token = DEMO_TOKEN if demo else None
        tokens = RememberedTokens(store.tokens) if settings.data.state else store.tokens
        waits = [tokens.renew()] if isinstance(tokens, RememberedTokens) else []
        serving = run(cluster, tokens, settings, demo_token=token, listener=listener, listening=_say)
        try:
            await until_one_ends(serving, cluster.wait_for_breakdown(), *waits)
        except (SparkEndedError, SupersededError) as error:
            _give_up(error)
        finally:
            await cluster.stop()


def _check_demo(settings: Settings, demo: bool) -> None:
    from tocsin.http.demo import check_demo

    if demo:
        check_demo("data", settings.data.host)


def _give_up(error: SparkEndedError | SupersededError) -> None:
    """Ends as a crash does: nothing can be ended in order without Spark, and nothing may be where another is at work.

    The next start needs no order.
    """
    messages.print(f"error: {error}", soft_wrap=True)
    os._exit(1)


def _say(url: str) -> None:
    messages.print(f"The data cluster listens on {url} (its calls: {url}/docs)", soft_wrap=True)


def _say_standby(url: str) -> None:
    messages.print(f"The data cluster stands by on {url}", soft_wrap=True)
