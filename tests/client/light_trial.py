"""Whether the client library by itself can subscribe and publish: a program runs with it, the network runs here.

``scripts/try-wheel`` runs this with a Python that has all extras, and names the one that has none: ``python -I
light_trial.py light/bin/python``. Nothing is imported but what is installed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

from tocsin.testing.sandbox import Sandbox

_PROGRAM: Final = Path(__file__).with_name("light_program.py")
_PATIENCE: Final = 60.0


class Trial(NamedTuple):
    """What became of it."""

    told: bytes
    heavy: bytes
    published: list[bytes]
    status: int


PASSED: Final = Trial(b'[{"be":1,"n":1}]', b"", [b'{"event":"flood"}'], 0)
"""One notification, no package loaded that is large, one record at the data cluster."""


async def run_trial(python: Path) -> Trial:
    """Has the program subscribe, publish, and be told of one execution."""
    async with asyncio.timeout(_PATIENCE), Sandbox() as sandbox:
        process = await asyncio.create_subprocess_exec(
            *(str(python), "-I", str(_PROGRAM), sandbox.url), stdout=asyncio.subprocess.PIPE, env=alone()
        )
        assert process.stdout is not None
        try:
            if await process.stdout.readline() == b"subscribed\n":
                sandbox.execute("Emergencies")
            told, _, heavy = (await process.stdout.read()).partition(b"\n")
            return Trial(told, heavy.strip(), sandbox.published, await process.wait())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def alone() -> dict[str, str]:
    """Nothing of this environment but what every program has."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TOCSIN"))}


if __name__ == "__main__":
    trial = asyncio.run(run_trial(Path(sys.argv[1])))
    if trial != PASSED:
        sys.exit(f"The client library by itself does not subscribe and publish: {trial} instead of {PASSED}.")
