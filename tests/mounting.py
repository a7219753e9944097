"""A small file system of a test's own, in a mount namespace that vanishes with the process that runs in it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def own_file_system(directory: Path, size: str) -> tuple[str, ...]:
    """A command that runs another one with a file system of ``size`` at ``directory``; skips where that cannot be."""
    unshare = shutil.which("unshare")
    mount = [str(unshare), "-rm", "mount", "-t", "tmpfs", "tmpfs", str(directory)]
    if unshare is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this system does not let us mount a file system of our own")
    script = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
    return (unshare, "-rm", "sh", "-c", script, str(directory))
