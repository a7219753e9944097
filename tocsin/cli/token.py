"""``tocsin token``: who may do what. Works on what the servers keep, whether or not one is running.

The data cluster keeps a list of its tokens, which can be revoked. The coordinator and the brokers know theirs by their
signature alone.
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.table import Table
from rich.text import Text

from tocsin.cli import invocation, messages, output
from tocsin.errors import NotFoundError

app = typer.Typer(
    help="Tokens: add, list and revoke those of the data cluster; sign those of the coordinator and the brokers.",
    no_args_is_help=True,
)


@app.command()
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    role: Annotated[str, typer.Option("--role", help="What it allows: admin, publisher or broker.")],
) -> None:
    """Make a token for the data cluster and print it. It is shown this once: only its hash is kept."""
    from tocsin.data.store import Store

    with Store(invocation(context).settings.data.directory) as store:
        token = store.tokens.add(name, role)
    messages.print(Text(f"The token of {name}, with the role {role}; keep it, it is not shown again:"))
    typer.echo(token)


@app.command("list")
def listing(context: typer.Context) -> None:
    """List the data cluster's tokens, without their secrets."""
    from tocsin.data.store import Store

    with Store(invocation(context).settings.data.directory) as store:
        tokens = store.tokens.all()
    table = Table("name", "role", "created", box=None, header_style="bold", pad_edge=False)
    for token in tokens:
        table.add_row(Text(token.name), token.role.value, f"{token.created_at:%Y-%m-%d %H:%M} UTC")
    output.print(table if tokens else "no tokens yet; 'tocsin token add NAME --role admin' makes one")


@app.command()
def revoke(context: typer.Context, name: Annotated[str, typer.Argument(help="Whose token it is.")]) -> None:
    """Make a token of the data cluster worthless, at once and also for a server that is running."""
    from tocsin.data.store import Store

    with Store(invocation(context).settings.data.directory) as store:
        if not store.tokens.revoke(name):
            raise NotFoundError(f"there is no token of {name}; 'tocsin token list' shows those there are")
    messages.print(Text(f"The token of {name} is revoked."))


@app.command("sign")
def signing(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    role: Annotated[
        Literal["subscriber", "broker", "operator"], typer.Option("--role", help="What its bearer may do.")
    ],
    days: Annotated[
        float | None,
        typer.Option("--days", min=0, help="How long it is valid; else as coordinator.token_seconds says."),
    ] = None,
) -> None:
    """Sign a token for the coordinator and the brokers with the coordinator's key, and print it.

    It is valid until it ends: there is no list of these tokens, and none can be revoked alone.
    """
    import time
    from contextlib import closing

    from tocsin.coordinator.store.opening import open_store
    from tocsin.coordinator.tokens import claims, sign

    settings = invocation(context).settings.coordinator
    life = settings.token_seconds if days is None else days * 86_400
    wanted = claims(name, role, time.time() + life)
    with closing(open_store(settings)) as store:
        token = sign(store.key(), wanted)
    where = "the database of coordinator.store" if settings.store else str(settings.directory)
    messages.print(
        Text(f"The token of {name}, with the role {role}, valid for {life / 86_400:g} days with the key in {where}:"),
        soft_wrap=True,
    )
    typer.echo(token)
