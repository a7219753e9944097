"""The ``tocsin`` command line: one file per command, put together in ``main``.

A command is a function that takes the ``typer.Context`` first and asks its ``Invocation`` for the settings::

    def publish(context: typer.Context, feed: Annotated[str, typer.Argument(help="The feed to publish to.")]) -> None:
        \"""Publish the records of a file.\"""
        from tocsin.client import ...      # what is heavy is imported in the function, so that --help stays quick

        settings = invocation(context).settings
        log.configure(settings.log.level, settings.log.format)     # a server; other commands print with ``output``

and one line in ``main`` registers it. It raises ``TocsinError`` for whatever a person can put right, and need not catch
it: ``main`` prints it as one line and exits with status 1. Usage errors exit with status 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import typer
from rich.console import Console

from tocsin.settings import Resolved, Settings, resolve

# Results go to standard output, everything else to standard error, so that commands can be piped.
output = Console(highlight=False)
messages = Console(stderr=True, highlight=False)


class Invocation:
    """The global options of one run of ``tocsin``. Settings are read when first asked for, so help never fails."""

    def __init__(self, config: Path | None = None, overrides: Sequence[str] = ()) -> None:
        self.config, self.overrides = config, tuple(overrides)

    @cached_property
    def resolved(self) -> Resolved:
        """The settings in effect and where each came from."""
        return resolve(self.config, overrides=self.overrides)

    @property
    def settings(self) -> Settings:
        """The settings in effect."""
        return self.resolved.settings


def invocation(context: typer.Context) -> Invocation:
    """The invocation a command runs in."""
    found = context.find_object(Invocation)
    assert found is not None
    return found


def is_interrupt(error: BaseException | None) -> bool:
    """Whether this is somebody's Ctrl-C. Out of compiled code it comes as what has caused errors of Python's own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None
