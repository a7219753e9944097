"""``tocsin worker``: a processing node."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Annotated

import typer

from tocsin import log
from tocsin.cli import Invocation, invocation, messages
from tocsin.errors import SparkEndedError
from tocsin.settings.secrets import secrets


def worker(
    context: typer.Context,
    name: Annotated[str | None, typer.Option("--name", help="The node's name; else worker.name.")] = None,
    head: Annotated[str | None, typer.Option("--head", help="The data cluster's URL; else worker.head.")] = None,
    master: Annotated[
        str | None, typer.Option("--master", help="The Spark master to run on; else spark.master.")
    ] = None,
    feeds: Annotated[
        list[str] | None, typer.Option("--feeds", help="A feed whose slices it takes; may be repeated. Else all.")
    ] = None,
) -> None:
    """Run a processing node, which shares the slices of feeds with others, until it is told to stop (Ctrl-C, SIGTERM).

    It then ends when others have its slices; told again, it ends at once.
    """
    import asyncio

    import uvloop

    from tocsin.worker.serve import run

    options = {"worker.name": name, "worker.head": head, "spark.master": master, "worker.feeds": feeds}
    settings = _with_options(invocation(context), options).settings
    log.configure(settings.log.level, settings.log.format, secrets=secrets(settings))
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run(settings, listening=_say))
    except SparkEndedError as error:
        # Without Spark nothing can be ended in order, and the next start needs no order.
        messages.print(f"error: {error}", soft_wrap=True)
        os._exit(1)


def _with_options(given: Invocation, options: Mapping[str, object]) -> Invocation:
    """As if the options were settings of the command line."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in options.items() if value}
    said = [f"{key}={text}" for key, text in texts.items()]
    return Invocation(given.config, (*given.overrides, *said))


def _say(url: str) -> None:
    messages.print(f"The worker says how it is on {url}/health", soft_wrap=True)
