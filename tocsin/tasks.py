"""Coroutines that live and die together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def until_one_ends(*parts: Coroutine[Any, Any, None]) -> None:
    """Runs all, ends all when one does, and raises what ended it."""
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()


async def until_all_end(parts: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Runs all until the last has ended; when one fails, ends the others, and raises what it failed with."""
    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
