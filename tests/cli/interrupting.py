"""Ctrl-C at a terminal, for commands that run many processes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Final

import psutil

_SECONDS: Final = 180


def interrupt(command: Sequence[str], begun: str) -> str:
    """Runs the command, and presses Ctrl-C once a line of its output starts with ``begun``: it ends well, and leaves no
    process behind. Returns what it says after that line."""
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert running.stdout is not None
    with running, running.stdout as lines:
        next(line for line in lines if line.startswith(begun))
        children = psutil.Process(running.pid).children(recursive=True)
        # As a terminal does: to all processes of the group.
        os.killpg(running.pid, signal.SIGINT)
        rest = lines.read()
        assert running.wait(_SECONDS) == 0
    assert children
    _, left = psutil.wait_procs(children, timeout=60)
    assert not left
    return rest
