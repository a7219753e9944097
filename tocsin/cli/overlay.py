"""``tocsin overlay``: heads and edges of the content-based overlay, and how they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin import log
from tocsin.cli import invocation, messages, output, stocks
from tocsin.cli.connection import CoordinatorOption, connect_coordinator
from tocsin.errors import InvalidError
from tocsin.settings.secrets import secrets

if TYPE_CHECKING:
    from rich.table import Table

    from tocsin.overlay.server.channel import ChannelWanted
    from tocsin.overlay.server.status import OverlayFigures
    from tocsin.settings import Settings

app = typer.Typer(
    help="The content-based overlay: run heads and edges, and look at them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(stocks.demo)


@app.command("head")
def head(
    context: typer.Context,
    channel: Annotated[
        str | None, typer.Option("--channel", metavar="NAME", help="Publish what this channel finds, row by row.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME=VALUE", help="A parameter of the channel; may be repeated"),
    ] = None,
    coordinator: CoordinatorOption = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--channel-token",
            envvar="TOCSIN_CHANNEL_TOKEN",
            metavar="TOKEN",
            help="A subscriber's, for the channel; else the head registers under its name",
        ),
    ] = None,
) -> None:
    """Run a cluster-head until it is told to stop (Ctrl-C, SIGTERM). Publishers and edges connect to it.

    With --channel, it is told what a channel finds as any subscriber is, and each row becomes a publication.
    """
    import asyncio

    import uvloop

    from tocsin.overlay.server.serve import run_head

    settings = _configure(context)
    if param and not channel:
        raise InvalidError("--param is for a channel: --channel NAME")
    wanted = _channel(settings, channel, param or [], coordinator, token) if channel else None
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_head(settings.overlay, ca=settings.tls.ca, listening=_say("head"), channel=wanted))


def _channel(
    settings: Settings, channel: str, param: list[str], coordinator: str | None, token: str | None
) -> ChannelWanted:
    from tocsin.cli.subscribe import parameters
    from tocsin.overlay.server.channel import ChannelWanted

    with connect_coordinator(settings, coordinator, token) as server:
        return ChannelWanted(channel, server.url, parameters(param), token or "")


@app.command("edge")
def edge(context: typer.Context) -> None:
    """Run an edge of the head at overlay.head until it is told to stop (Ctrl-C, SIGTERM). Subscribers connect to it."""
    import asyncio

    import uvloop

    from tocsin.overlay.server.serve import run_edge

    settings = _configure(context)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_edge(settings.overlay, ca=settings.tls.ca, listening=_say("edge")))


@app.command("top")
def top(
    context: typer.Context,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Any broker of the overlay; else that of the settings")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what each broker says as a line of JSON.")] = False,
    token: Annotated[
        str | None, typer.Option("--token", envvar="TOCSIN_TOKEN", metavar="TOKEN", help="The overlay's clients' token")
    ] = None,
) -> None:
    """Show what each broker of an overlay says of itself: state, loads, and how many it serves."""
    import msgspec

    from tocsin.cli.connection import local_url
    from tocsin.overlay.server.survey import survey

    settings = invocation(context).settings
    section = settings.overlay
    scheme = "https" if section.tls_certificate else "http"
    found = survey(
        url or local_url(section.host, section.port, scheme), token or section.client_token, ca=settings.tls.ca
    )
    if json:
        for figures in found.brokers:
            typer.echo(msgspec.json.encode(figures).decode())
    else:
        output.print(_table(found.brokers))
    for problem in found.problems:
        messages.print(problem, style="red", soft_wrap=True)


def _configure(context: typer.Context) -> Settings:
    settings = invocation(context).settings
    log.configure(settings.log.level, settings.log.format, secrets=secrets(settings))
    return settings


def _say(role: str) -> Callable[[str], None]:
    return lambda url: messages.print(f"The {role} listens on {url}", soft_wrap=True)


def _table(brokers: list[OverlayFigures]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("broker", "role", "cluster", "state"):
        table.add_column(heading)
    for heading in ("I_r", "O_r", "delay", "clients"):
        table.add_column(heading, justify="right")
    for each in brokers:
        metrics = each.metrics
        loads = (f"{metrics.input:.3f}", f"{metrics.output:.3f}", f"{metrics.delay * 1e3:.3f} ms") if metrics else "---"
        state = f"{each.state} ({each.session})" if each.session else each.state
        table.add_row(Text(each.broker), each.role, Text(each.cluster), state, *loads, f"{each.clients:,}")
    return table
