"""``tocsin token``: who may do what. Works on what the servers keep, whether or not one is running.

The data cluster keeps a list of its tokens, which can be revoked. The coordinator and the brokers know theirs by their
signature, and by what was withdrawn; a coordinator that runs notices a change within a second, and tells its brokers.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table
from rich.text import Text

from tocsin.cli import invocation, messages, output
from tocsin.errors import InvalidError, NotFoundError

if TYPE_CHECKING:
    from tocsin.coordinator.store import CoordinatorStore

app = typer.Typer(
    help="Tokens: add, list and revoke those of the data cluster; sign and withdraw those of coordinator and brokers.",
    no_args_is_help=True,
)


@app.command()
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    role: Annotated[str, typer.Option("--role", help="What it allows: admin, publisher, broker or node.")],
) -> None:
    """Make a token for the data cluster and print it. It is shown this once: only its hash is kept."""
    from tocsin.data.store import open_store

    with open_store(invocation(context).settings.data) as store:
        token = store.tokens.add(name, role)
    messages.print(Text(f"The token of {name}, with the role {role}; keep it, it is not shown again:"))
    typer.echo(token)


@app.command("list")
def listing(context: typer.Context) -> None:
    """List the data cluster's tokens, without their secrets."""
    from tocsin.data.store import open_store

    with open_store(invocation(context).settings.data) as store:
        tokens = store.tokens.all()
    table = Table("name", "role", "created", box=None, header_style="bold", pad_edge=False)
    for token in tokens:
        table.add_row(Text(token.name), token.role.value, f"{token.created_at:%Y-%m-%d %H:%M} UTC")
    output.print(table if tokens else "no tokens yet; 'tocsin token add NAME --role admin' makes one")


@app.command()
def revoke(context: typer.Context, name: Annotated[str, typer.Argument(help="Whose token it is.")]) -> None:
    """Make a token of the data cluster worthless, at once and also for a server that is running."""
    from tocsin.data.store import open_store

    with open_store(invocation(context).settings.data) as store:
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
    group: Annotated[
        list[str] | None, typer.Option("--group", help="A group the subscriber is in; may be repeated.")
    ] = None,
) -> None:
    """Sign a token for the coordinator and the brokers with the coordinator's key, and print it.

    A subscriber's name is registered with it, so that nobody else can. The id that is said before the token is what
    withdraws it: 'tocsin token withdraw --id ID'.
    """
    import time

    from msgspec.structs import replace

    from tocsin.coordinator.tokens import claims

    if group and role != "subscriber":
        raise InvalidError(f"--group is for subscribers: {_article(role)} is in no group")
    life = invocation(context).settings.coordinator.token_seconds if days is None else days * 86_400
    wanted = claims(name, role, time.time() + life, tuple(group or ()))
    with _coordinator_store(context) as store:
        if role == "subscriber":
            store.amend(lambda keyring: keyring.lasting(wanted.expires), name)
        registration = store.registration(name) if role == "subscriber" else 0
        token = store.keyring().sign(replace(wanted, registration=registration))
    said = f"The token of {name}, with the role {role}, valid for {life / 86_400:g} days, with the id {wanted.id}:"
    messages.print(Text(said), soft_wrap=True)
    typer.echo(token)


@app.command()
def withdraw(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Whose signed tokens, all of them made so far.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="Of a single one, as 'tocsin token sign' said it.")] = None,
) -> None:
    """Make signed tokens worthless, within seconds: connections that were opened with them are closed."""
    if (name is None) == (id is None):
        raise InvalidError("say whose tokens, or which one: 'tocsin token withdraw NAME', or '--id ID'")
    with _coordinator_store(context) as store:
        if id is not None:
            store.amend(lambda keyring: keyring.without(id))
        elif name is not None:
            store.amend(lambda keyring: keyring.without_name(name))
    whose = f"The token with the id {id} is" if id is not None else f"All tokens of {name} signed so far are"
    messages.print(Text(f"{whose} withdrawn."))


@app.command()
def keys(context: typer.Context) -> None:
    """Print the public halves of the coordinator's keys, for overlay.public_keys: one line each, the newest last."""
    with _coordinator_store(context) as store:
        trust = store.keyring().trust
    for id, key in trust.keys.items():
        typer.echo(f"{id}:{key.text}")


@app.command()
def rotate(
    context: typer.Context,
    days: Annotated[
        float | None,
        typer.Option("--days", min=0, help="How long what was signed so far is taken; else for its whole life."),
    ] = None,
) -> None:
    """Sign with a new key from now on. What the old one has signed is taken for a while yet; with --days 0 for none."""
    import time

    life = invocation(context).settings.coordinator.token_seconds if days is None else days * 86_400
    now = time.time()
    with _coordinator_store(context) as store:
        store.amend(lambda keyring: keyring.rotate(now, now + life))
    old = f"for {life / 86_400:g} days" if life else "no more"
    messages.print(Text(f"A new key signs from now on; what was signed before is taken {old}."), soft_wrap=True)


def _coordinator_store(context: typer.Context) -> AbstractContextManager[CoordinatorStore]:
    from contextlib import closing

    from tocsin.coordinator.store.opening import open_store

    return closing(open_store(invocation(context).settings.coordinator))


def _article(role: str) -> str:
    return f"an {role}" if role == "operator" else f"a {role}"
