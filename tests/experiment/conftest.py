from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Program
from tocsin.balance import policies


@pytest.fixture
def tocsin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    monkeypatch.chdir(tmp_path)
    return Program(monkeypatch, capsys)


@pytest.fixture(autouse=True)
def _forget_policies(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test enters among the policies or Python's path is gone afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = dict(policies.PLANNERS)
    yield
    policies.PLANNERS.clear()
    policies.PLANNERS.update(before)
