"""Whoever waits is told for what: on standard error, after a second or two, and again when the reason changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.text import Text

from tocsin.cli import messages

SOON_SECONDS: Final = 1.5
AGAIN_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 5.0

Tell = Callable[[str], None]


def tell(sentence: str) -> None:
    """Prints a sentence for who waits."""
    messages.print(Text(sentence, style="yellow"), soft_wrap=True)


class Reasons:
    """What is waited for, told when it is new, and again after a while: not at every look."""

    def __init__(self, tell: Tell = tell, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._last, self._at = "", 0.0

    def say(self, reason: str, until: str = "") -> None:
        """Why it does not go on, and how long it is tried; the latter may change without being news."""
        if reason != self._last or self._clock() - self._at >= AGAIN_SECONDS:
            self._last, self._at = reason, self._clock()
            self._tell(f"{reason}; {until}" if until else reason)


@contextmanager
def telling(reason: Callable[[], str], reasons: Reasons, soon: float = SOON_SECONDS) -> Iterator[None]:
    """While entered for longer than a moment, says why. ``reason`` is called in another thread, and may take long."""
    over = threading.Event()

    def watch() -> None:
        wait = soon
        while not over.wait(wait):
            found, wait = reason(), _LOOK_SECONDS
            if not over.is_set():
                reasons.say(found)

    watcher = threading.Thread(target=watch, name="telling", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
