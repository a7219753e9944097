"""A process that ends with the one that started it, even if that is killed with no time to say so. Linux only."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
# Loaded here, since little may be done between fork and exec.
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def leash() -> Callable[[], None]:
    """What a child is to call before it becomes another program; its parent must start it from the main thread.

    A child is killed rather than asked: nobody would be left to see that it obeys, and what it keeps outlives a crash.
    """
    parent = os.getpid()

    def tie() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return tie
