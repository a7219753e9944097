from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Program
from tocsin.balance import registry


@pytest.fixture
def tocsin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    monkeypatch.chdir(tmp_path)
    return Program(monkeypatch, capsys)


@pytest.fixture(autouse=True)
def _forget_policies(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test enters into the registry or Python's path is gone afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = dict(registry.PLANNERS)
    yield
    registry.PLANNERS.clear()
    registry.PLANNERS.update(before)
