"""``tocsin slices``: who processes which part of a feed, at which rate, and what is moving."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer
from rich.text import Text

from tocsin.cli import invocation, messages, output
from tocsin.cli.connection import ServerOption, TokenOption, connect

app = typer.Typer(help="Slices of feeds, and the processing nodes that share them.", invoke_without_command=True)
NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="The node's name, as 'tocsin slices' shows it.")]


@app.callback()
def slices(
    context: typer.Context,
    feed: Annotated[str | None, typer.Option("--feed", help="Of this feed alone.")] = None,
    each: Annotated[bool, typer.Option("--each", help="Show each slice.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
    server: ServerOption = None,
    token: TokenOption = None,
) -> None:
    """Show who owns which slices, how busy the nodes are, what waits and what is moving."""
    if context.invoked_subcommand is not None:
        return
    from tocsin.cli.sharing import screen, status_of

    with connect(invocation(context).settings, server, token) as data:
        if json:
            typer.echo(data.get("/slices").decode())
        else:
            output.print(screen(status_of(data), feed, each))


@app.command()
def drain(context: typer.Context, node: NodeArgument, server: ServerOption = None, token: TokenOption = None) -> None:
    """Empty a node: others get its slices. A worker ends then."""
    _set(context, node, True, server, token)
    messages.print(Text(f"{node} is being emptied; 'tocsin slices undrain {node}' lets it have slices again."))


@app.command()
def undrain(context: typer.Context, node: NodeArgument, server: ServerOption = None, token: TokenOption = None) -> None:
    """Let a drained node have slices again."""
    _set(context, node, False, server, token)
    messages.print(Text(f"{node} may have slices again."))


def _set(context: typer.Context, node: str, on: bool, server: str | None, token: str | None) -> None:
    with connect(invocation(context).settings, server, token) as data:
        data.put(f"/nodes/{quote(node, safe='')}/draining", b'{"on": true}' if on else b'{"on": false}')
