"""The ``tocsin`` program, also as ``python -m tocsin``: the command line, or what to install to have it."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the program."""
    try:
        from tocsin.cli.main import main as run
    except ModuleNotFoundError as error:
        if error.name not in ("rich", "typer"):
            raise
        sys.exit(f"error: the command line needs {error.name}, which is not installed: pip install 'tocsin[cli]'")
    run()


if __name__ == "__main__":
    main()
