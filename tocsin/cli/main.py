"""The ``tocsin`` program: global options, the commands, and how errors reach a person.

Importing this must stay quick: a command imports what is heavy (Spark, pandas, servers) in its function.
"""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tocsin import __version__
from tocsin.cli import (
    Invocation,
    apply,
    balance,
    bench,
    broker,
    coordinator,
    data,
    demo,
    experiment,
    is_interrupt,
    messages,
    overlay,
    publish,
    remove,
    settings,
    show,
    simulate,
    slices,
    subscribe,
    token,
    top,
    up,
    worker,
)
from tocsin.errors import TocsinError

# Which parts of Tocsin a command needs; those that are not here and need more than the command line need all of it.
_EXTRAS = {
    "apply": "data",
    "publish": "data",
    "broker": "broker",
    "coordinator": "coordinator",
    "token": "coordinator",
    "data": "data",
    "worker": "data",
    "overlay": "overlay",
}

app = typer.Typer(
    name="tocsin",
    help="Tocsin: subscribe to queries over big data, and be told what is new.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("up")(up.up)
app.command("demo")(demo.demo)
app.command("data")(data.data)
app.command("coordinator")(coordinator.coordinator)
app.command("broker")(broker.broker)
app.command("worker")(worker.worker)
app.command("apply")(apply.apply)
app.command("publish")(publish.publish)
app.command("subscribe")(subscribe.subscribe)
app.command("show")(show.show)
app.add_typer(overlay.app, name="overlay")
app.add_typer(token.app, name="token")
app.add_typer(remove.app, name="remove")
app.add_typer(balance.app, name="balance")
app.add_typer(bench.app, name="bench")
app.add_typer(simulate.app, name="simulate")
app.add_typer(experiment.app, name="experiment")
app.command("top")(top.top)
app.add_typer(slices.app, name="slices")
app.command("settings")(settings.show)


def _fill_paragraphs(commands: typer.Typer) -> None:
    """Has the lines of a command's description broken by the terminal's width, not where the docstring's lines end."""
    for command in commands.registered_commands:
        paragraphs = (command.help or inspect.getdoc(command.callback) or "").split("\n\n")
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    for group in commands.registered_groups:
        if group.typer_instance:
            _fill_paragraphs(group.typer_instance)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tocsin {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="PATH", help="The settings file; else tocsin.toml, if there is one"),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a setting; may be repeated")
    ] = None,
    version: Annotated[  # noqa: ARG001  (the callback acts on it)
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit")
    ] = False,
) -> None:
    """Options before the command hold for every command."""
    context.obj = Invocation(config, overrides or ())


_fill_paragraphs(app)


def main() -> None:
    """Run the program. Errors are one line on standard error; ``TOCSIN_DEBUG=1`` shows their tracebacks."""
    try:
        app()
    except Exception as error:
        if is_interrupt(error):
            messages.print("Aborted!")
            sys.exit(1)
        if os.environ.get("TOCSIN_DEBUG") == "1":
            raise
        messages.print(Text.assemble(("error: ", "bold red"), _sentence(error)), soft_wrap=True)
        sys.exit(1)


def _sentence(error: Exception) -> str:
    if isinstance(error, TocsinError):
        return " ".join(str(error).splitlines())
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("tocsin"):
        extra = next((_EXTRAS[word] for word in sys.argv[1:] if word in _EXTRAS), "all")
        return f"this needs {error.name}, which is not installed: pip install 'tocsin[{extra}]'"
    what = " ".join(f"{type(error).__name__}: {error}".splitlines())
    return f"{what} (this is a fault in Tocsin; TOCSIN_DEBUG=1 shows where)"


if __name__ == "__main__":
    main()
