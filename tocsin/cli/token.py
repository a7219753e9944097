"""``tocsin token``: who may do what. Works on the data directory itself, whether or not a server runs on it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from tocsin.cli import invocation, messages, output
from tocsin.errors import NotFoundError

app = typer.Typer(help="Make, list and revoke the tokens of publishers, brokers and admins.", no_args_is_help=True)


@app.command()
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    role: Annotated[str, typer.Option("--role", help="What it allows: admin, publisher or broker.")],
) -> None:
    """Make a token and print it. It is shown this once: only its hash is kept."""
    from tocsin.data.store import Store

    with Store(invocation(context).settings.data.directory) as store:
        token = store.tokens.add(name, role)
    messages.print(Text(f"The token of {name}, with the role {role}; keep it, it is not shown again:"))
    typer.echo(token)


@app.command("list")
def listing(context: typer.Context) -> None:
    """List the tokens, without their secrets."""
    from tocsin.data.store import Store

    with Store(invocation(context).settings.data.directory) as store:
        tokens = store.tokens.all()
    table = Table("name", "role", "created", box=None, header_style="bold", pad_edge=False)
    for token in tokens:
        table.add_row(Text(token.name), token.role.value, f"{token.created_at:%Y-%m-%d %H:%M} UTC")
    output.print(table if tokens else "no tokens yet; 'tocsin token add NAME --role admin' makes one")


@app.command()
def revoke(context: typer.Context, name: Annotated[str, typer.Argument(help="Whose token it is.")]) -> None:
    """Make a token worthless, at once and also for a server that is running."""
    from tocsin.data.store import Store

    with Store(invocation(context).settings.data.directory) as store:
        if not store.tokens.revoke(name):
            raise NotFoundError(f"there is no token of {name}; 'tocsin token list' shows those there are")
    messages.print(Text(f"The token of {name} is revoked."))
