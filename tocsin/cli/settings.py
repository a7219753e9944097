"""``tocsin settings``: what is in effect, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from tocsin.cli import invocation, output
from tocsin.settings import Resolved
from tocsin.settings.keys import KEYS, SettingKey
from tocsin.settings.secrets import show_value
from tocsin.settings.text import example, markdown


def show(
    context: typer.Context,
    toml: Annotated[bool, typer.Option("--toml", help="Print a settings file with every key explained")] = False,
    page: Annotated[bool, typer.Option("--markdown", help="Print the documentation of all keys")] = False,
) -> None:
    """Show the settings in effect and where each came from."""
    if toml or page:
        typer.echo(example() if toml else markdown(), nl=False)
        return
    output.print(_table(invocation(context).resolved))


def _table(resolved: Resolved) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("setting", "value"):
        table.add_column(heading, overflow="fold")
    table.add_column("from", no_wrap=True)
    for key in KEYS.values():
        for dotted, value in _values(resolved, key):
            origin = resolved.origin(dotted)
            style = "" if dotted in resolved.origins else "dim"
            table.add_row(Text(dotted), Text(show_value(dotted, value)), Text(origin), style=style)
    return table


def _values(resolved: Resolved, key: SettingKey) -> Iterator[tuple[str, object]]:
    """The key with its value; a table that has entries as those."""
    value = resolved.value(key.dotted)
    if isinstance(value, dict) and value:
        yield from ((f"{key.dotted}.{name}", entry) for name, entry in value.items())
    else:
        yield key.dotted, value
