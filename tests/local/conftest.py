from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ports import free_port
from tocsin.local.part import Part

PROGRAM = (sys.executable, "-S", str(Path(__file__).with_name("answering.py")))
Make = Callable[..., Part]


@pytest.fixture
def part(tmp_path: Path) -> Make:
    """Makes parts that run ``answering.py``: a name, and how it is to misbehave."""

    def make(name: str, *manners: str, ready_seconds: float = 30.0, stop_seconds: float = 30.0) -> Part:
        port = free_port()
        return Part(
            name,
            (str(port), *manners),
            f"http://127.0.0.1:{port}",
            tmp_path / f"{name}.log",
            program=PROGRAM,
            ready_seconds=ready_seconds,
            stop_seconds=stop_seconds,
        )

    return make
