"""What a person sees of a network that starts and runs: sentences, and how long each wait took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.text import Text


class NetworkScreen:
    """Prints to a console; where that is no terminal, plain lines."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def say(self, text: str = "", style: str = "") -> None:
        """A sentence, on one line however long."""
        self.console.print(Text(text, style=style), soft_wrap=True)

    def trouble(self, text: str) -> None:
        """A sentence that someone should see."""
        self.say(text, style="yellow")

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Says what is being done, for work that prints something itself."""
        self.say(f"{what} …")
        with self.console.status("") if self.console.is_terminal else nullcontext():
            yield

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Says what takes its time, with something that moves where that can be seen, and how long it took."""
        started = time.monotonic()
        moving = self.console.is_terminal
        if not moving:
            self.console.print(f"{what} … ", end="", soft_wrap=True)
        try:
            with self.console.status(f"{what} …") if moving else nullcontext():
                yield
        except BaseException:
            self.say("" if not moving else f"{what} … failed")
            raise
        took = f"{time.monotonic() - started:.0f} s"
        self.say(f"{what} … {took}" if moving else took)
