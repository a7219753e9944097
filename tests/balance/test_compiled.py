"""Machine code that is kept between processes must be that of the sources as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.balance.compiled import forget_stale


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "inner" / "__pycache__").mkdir(parents=True)
    (tmp_path / "a.py").write_text("a = 1\n")
    (tmp_path / "inner" / "b.py").write_text("b = 1\n")
    forget_stale(tmp_path)
    (tmp_path / "inner" / "__pycache__" / "b.f-1.py311.nbi").write_text("code")
    return tmp_path


def kept(package: Path) -> list[str]:
    return [path.name for path in package.rglob("*.nb?")]


def test_code_stays_while_no_source_changes(package: Path) -> None:
    forget_stale(package)
    assert kept(package) == ["b.f-1.py311.nbi"]


def test_a_change_in_any_file_forgets_the_code_of_all(package: Path) -> None:
    (package / "a.py").write_text("a = 2\n")
    forget_stale(package)
    assert kept(package) == []


def test_a_package_that_cannot_be_written_to_is_left_alone(package: Path) -> None:
    (package / "__pycache__" / "compiled.stamp").unlink()
    (package / "__pycache__").rmdir()
    (package / "__pycache__").write_text("in the way")
    forget_stale(package)
