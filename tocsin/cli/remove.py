"""``tocsin remove``: people who leave for good, and brokers that are no more."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer
from rich.text import Text

from tocsin.cli import invocation, messages
from tocsin.cli.connection import CoordinatorOption, RemoteError, TokenOption, connect_coordinator
from tocsin.errors import NotFoundError

app = typer.Typer(
    help="Remove subscribers and brokers for good; 'me' is for subscribers themselves.", no_args_is_help=True
)


@app.command()
def user(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The subscriber's name.")],
    coordinator: CoordinatorOption = None,
    token: TokenOption = None,
) -> None:
    """Remove a subscriber, with all it has subscribed to. Its tokens are worthless; the name may be had by another."""
    with connect_coordinator(invocation(context).settings, coordinator, token) as server:
        server.delete(f"/users/{quote(name, safe='')}")
    messages.print(Text(f"{name} is removed."))


@app.command()
def me(context: typer.Context, coordinator: CoordinatorOption = None, token: TokenOption = None) -> None:
    """Leave for good, by your own token: what you have subscribed to ends, and the token is worthless."""
    with connect_coordinator(invocation(context).settings, coordinator, token) as server:
        try:
            server.delete("/users/me")
        except RemoteError as error:
            if error.code != NotFoundError.code:
                raise
            # To an operator it is a name like any other.
            raise NotFoundError("this token is no subscriber's; 'tocsin remove user NAME' removes another") from None
    messages.print("You have left; whoever registers under the name is somebody else.")


@app.command()
def broker(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="BROKER", help="The broker's name, as in 'tocsin top'.")],
    coordinator: CoordinatorOption = None,
    token: TokenOption = None,
) -> None:
    """Remove a broker that is dead, or was drained. Its tokens are worthless, so sign another if it is to come back."""
    with connect_coordinator(invocation(context).settings, coordinator, token) as server:
        server.delete(f"/brokers/{quote(name, safe='')}")
    messages.print(Text(f"{name} is removed; 'tocsin token sign {name} --role broker' lets it come back."))
