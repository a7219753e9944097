"""How this program is called, for messages that tell a person what to type."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def program() -> str:
    """The command that runs it from another terminal."""
    if shutil.which("tocsin"):
        return "tocsin"
    return sys.argv[0] if Path(sys.argv[0]).name == "tocsin" else f"{sys.executable} -m tocsin"
