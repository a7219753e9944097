"""``tocsin show``: what a running data cluster has, and how it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

import typer
from rich.table import Table
from rich.text import Text

from tocsin.cli import invocation, messages, output
from tocsin.cli.connection import RemoteServer, ServerOption, TokenOption, connect

STATEMENT: Final = "statement"
ERROR: Final = "error"
SLICES: Final = "slice_records"
WRONG: Final = {
    "missed": "missed, as an execution took longer than the period",
    "set_aside": "set aside",
    "dead_letters": "dead letters",
}
What = Literal["datasets", "feeds", "channels", "subscriptions", "brokers", "health"]


def show(
    context: typer.Context,
    what: Annotated[What, typer.Argument(help="What to look at.")],
    limit: Annotated[int, typer.Option("--limit", min=1, help="The most rows to show.")] = 1000,
    statements: Annotated[
        bool, typer.Option("--statements", help="Print the statements that create them, ready to be applied elsewhere.")
    ] = False,
    server: ServerOption = None,
    token: TokenOption = None,
) -> None:
    """Show the datasets, feeds, channels, subscriptions or brokers, or how the data cluster is."""
    with connect(invocation(context).settings, server, token) as data:
        if what == "health":
            _health(data)
        else:
            _listing(data, what, limit, statements)


def _listing(data: RemoteServer, what: str, limit: int, statements: bool) -> None:
    import msgspec

    from tocsin.model.messages import Listed

    listed = msgspec.json.decode(data.get(f"/{what}", limit=limit), type=Listed)
    if not listed.items:
        messages.print(f"there are no {what}")
        return
    if statements:
        typer.echo("\n\n".join(item[STATEMENT] for item in listed.items if STATEMENT in item))
    else:
        output.print(rows([brief(item) for item in listed.items]))
        for item in listed.items:
            if remarks := _remarks(item):
                output.print(Text(f"• {item['name']}: {', '.join(remarks)}"), soft_wrap=True)
    if listed.total > len(listed.items):
        messages.print(f"… and {listed.total - len(listed.items)} more; --limit shows more of them")


def _health(data: RemoteServer) -> None:
    import msgspec

    from tocsin.model.messages import Health

    said = data.health()
    health = msgspec.json.decode(said, type=Health)
    style = "green" if health.status == "ok" else "yellow"
    # Whoever shows no token is told the status, and nothing else.
    up = f", up {health.uptime_seconds:.0f} s" if b'"uptime_seconds"' in said else "; with a token there is more to see"
    output.print(Text.assemble("status ", (health.status, f"bold {style}"), up))
    for problem in health.problems:
        output.print(Text(f"• {problem}"))
    for things in (health.feeds, health.channels):
        if things:
            output.print(rows(map(_condense, msgspec.to_builtins(things))))


def brief(item: Mapping[str, Any]) -> dict[str, Any]:
    """What of a thing fits into a line with others: how often a channel runs is its kind, what is wrong comes below."""
    brief = {name: value for name, value in item.items() if name not in (ERROR, *WRONG)}
    if period := brief.pop("period", None):
        brief["kind"] = f"every {period:g} s"
    return _condense(brief)


def _condense(item: Mapping[str, Any]) -> dict[str, Any]:
    """With the range of what there may be a thousand of: how many records the slices have."""
    counts = item.get(SLICES)
    return {**item, SLICES: f"{min(counts)} to {max(counts)}" if any(counts) else ""} if counts else dict(item)


def _remarks(item: Mapping[str, Any]) -> list[str]:
    """What is wrong with a thing."""
    counted = [f"{item[name]} {what}" for name, what in WRONG.items() if item.get(name)]
    return [*([str(item[ERROR])] if item.get(ERROR) else []), *counted]


def rows(items: Iterable[Mapping[str, Any]]) -> Table:
    """A table of objects, with a column for each name that says something of one, but for statements: they are too
    wide."""
    items = list(items)
    said = dict.fromkeys(name for item in items for name, value in item.items() if value or name == "name")
    # In the order of the objects, which need not be that in which they say something.
    names = [name for name in dict.fromkeys(name for item in items for name in item) if name in said]
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in (name for name in names if name != STATEMENT):
        table.add_column(name.replace("_", " "), overflow="fold", no_wrap=name == "name")
    for item in items:
        table.add_row(*(Text(_cell_text(item.get(name))) for name in names if name != STATEMENT))
    return table


def facts(item: Mapping[str, Any]) -> Table:
    """A table of one object, with a line for each name that says something of it, but for statements."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in item.items():
        if value and name != STATEMENT:
            table.add_row(name.replace("_", " "), Text(_cell_text(value)))
    return table


def _cell_text(value: object) -> str:
    import msgspec

    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
