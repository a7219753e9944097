"""Waiting for what another thread or process will bring about, no longer than a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

T = TypeVar("T")

SECONDS: Final = 60.0
_PAUSE: Final = 0.01


def until(condition: Callable[[], T], seconds: float = SECONDS) -> T:
    """What ``condition`` says, once that is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"still {found!r} after {seconds} seconds"
        time.sleep(_PAUSE)
    return found


async def until_async(condition: Callable[[], Awaitable[T]], seconds: float = SECONDS) -> T:
    """As :func:`until`, on the event loop."""
    deadline = time.monotonic() + seconds
    while not (found := await condition()):
        assert time.monotonic() < deadline, f"still {found!r} after {seconds} seconds"
        await asyncio.sleep(_PAUSE)
    return found
