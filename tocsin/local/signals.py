"""Ctrl-C and its relatives, as an event to wait for."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def until_told() -> Iterator[asyncio.Event]:
    """An event that is set when the process is told to end. Whoever tells it twice cancels the task that entered."""
    loop, task, ended = asyncio.get_running_loop(), asyncio.current_task(), asyncio.Event()
    assert task is not None

    def end() -> None:
        if ended.is_set():
            task.cancel()
        ended.set()

    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heeded:
        loop.add_signal_handler(number, end)
    try:
        yield ended
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)
