"""Where a demo is shown: lines as things happen, and the brokers, which stay in view where that is possible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tocsin.local.screen import NetworkScreen

# Where nothing can be drawn over, the brokers are printed so often; elsewhere a line remains so often.
TABLE_SECONDS: Final = 5
LINE_SECONDS: Final = 10


class StageScreen(NetworkScreen):
    """Prints to a console; on a terminal the brokers stay in view at its bottom, while the stage is entered."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._live: Live | None = None
        self._open = False

    @contextmanager
    def stage(self) -> Iterator[None]:
        """While entered, the brokers stay in view, where that is possible."""
        self._open = True
        try:
            if self.console.is_terminal:
                with Live(Text(), console=self.console, auto_refresh=False) as self._live:
                    yield
            else:
                yield
        finally:
            self._open, self._live = False, None

    def happen(self, line: Text) -> None:
        """Something that happened to somebody, shown while the stage is entered."""
        if not self._open:
            return
        if self._live:
            self.console.print(line, no_wrap=True, overflow="ellipsis")
        else:
            self.console.print(line, soft_wrap=True)

    def stand(self, second: int, text: str, table: Table, begun: bool) -> None:
        """How it stands, once in a second; ``begun`` is whether there is anything in the table."""
        line = Text(f"── {second} s: {text}", style="bold")
        if self._live is None:
            if second % TABLE_SECONDS == 0:
                self.console.print(line, soft_wrap=True)
            if second % TABLE_SECONDS == 0 and begun:
                self.console.print(table)
            return
        if second % LINE_SECONDS == 0:
            self.console.print(Text(line.plain, style="dim"), soft_wrap=True)
        self._live.update(Group(Text(), line, table, Text()), refresh=True)


def count(number: int, thing: str, things: str = "") -> str:
    """So many things."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {things or thing + 's'}"
