"""Waiting for what is at hand, which is cancelled meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_AGAIN_SECONDS: Final = 0.2


def cancel_until(ended: Callable[[float], bool], cancel: Callable[[], None]) -> None:
    """Cancels again and again until it has ended: Spark cancels nothing that has not begun, and what is cancelled may
    take that for a failure of its own, and go on.

    Args:
        ended: waits at most so many seconds for the end, and says whether it has come.
    """
    while not ended(_AGAIN_SECONDS):
        cancel()
