"""Waiting for what other threads, tasks or processes bring about, by looking again and again until a deadline."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, overload

T = TypeVar("T")

# Generous, for the machine may be shared: reaching it means that something is wrong, not slow.
SECONDS: Final = 60.0
_PAUSE: Final = 0.01
# Longer, for those who are waited for may live in the same loop.
_LOOP_PAUSE: Final = 0.02


def until(condition: Callable[[], T | None]) -> T:
    """What the condition gives, once that is true."""
    deadline = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, f"still {found!r} after {SECONDS:.0f} s"
        time.sleep(_PAUSE)
    return found


@overload
async def until_async(
    condition: Callable[[], Awaitable[T | None]], what: str = ..., seconds: float = ..., pause: float = ...
) -> T: ...
@overload
async def until_async(
    condition: Callable[[], T | None], what: str = ..., seconds: float = ..., pause: float = ...
) -> T: ...
async def until_async(
    condition: Callable[[], Any], what: str = "change", seconds: float = SECONDS, pause: float = _LOOP_PAUSE
) -> Any:
    """As :func:`until`, on the event loop; the condition may be a coroutine function."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        found = await found if inspect.isawaitable(found) else found
        if found:
            return found
        assert time.monotonic() < deadline, f"no {what} within {seconds:.0f} s; still {found!r}"
        await asyncio.sleep(pause)
