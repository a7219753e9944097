"""How far an experiment is: a bar on a terminal, a line per cell elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from tocsin.experiment.study import Tell


class ProgressBar:
    """Shows the cells of one run on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bars.add_task("", total=None)
        self._done = self._all = 0

    @contextmanager
    def over(self, cells: Sequence[str], done: Sequence[str]) -> Iterator[None]:
        """Shows the progress through these cells, of which some are done already."""
        self._done, self._all = len(done), len(cells)
        if done:
            self._say(f"{len(done)} of {len(cells)} cells are there already")
        self._bars.update(self._task, total=len(cells), completed=len(done))
        with self._bars:
            yield

    def tell(self, cell: str) -> Tell:
        """What a cell calls to say how far it is."""

        def say(doing: str, part: float) -> None:
            text = f"{cell}: {doing}" if doing else cell
            self._bars.update(self._task, description=text, completed=self._done + min(part, 0.99))

        say("", 0.0)
        return say

    def finished(self, cell: str) -> None:
        """A cell is done."""
        self._done += 1
        self._bars.update(self._task, completed=self._done)
        self._say(f"{cell} done, {self._done} of {self._all}")

    def _say(self, text: str) -> None:
        if not self._console.is_terminal:
            self._console.print(text, soft_wrap=True)
