"""Machine code that is kept between processes must be that of the sources as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.balance.compiled import forget_stale


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A compiled function that takes in what another module has of a third, and a module that it does not know."""
    package = tmp_path / "pack"
    (package / "inner" / "__pycache__").mkdir(parents=True)
    (package / "loop.py").write_text("from outer.pack.inner import (\n    step,\n)\n@compiled\ndef f(): ...\n")
    (package / "inner" / "step.py").write_text("from outer.pack.constants import A, B\n")
    (package / "constants.py").write_text("A = B = 1\n")
    (package / "screen.py").write_text("from outer.pack.loop import f\n")
    forget_stale(package)
    (package / "inner" / "__pycache__" / "step.f-1.py311.nbi").write_text("code")
    return package


def kept(package: Path) -> list[str]:
    return [path.name for path in package.rglob("*.nb?")]


def test_code_stays_while_no_source_of_it_changes(package: Path) -> None:
    (package / "screen.py").write_text("from outer.pack.loop import f as g\n")
    (package / "another.py").write_text("")
    forget_stale(package)
    assert kept(package) == ["step.f-1.py311.nbi"]


@pytest.mark.parametrize("name", ["loop.py", "inner/step.py", "constants.py"])
def test_a_change_in_anything_that_is_compiled_in_forgets_the_code_of_all(package: Path, name: str) -> None:
    with (package / name).open("a") as source:
        source.write("# another\n")
    forget_stale(package)
    assert kept(package) == []


def test_what_is_compiled_from_now_on_is_known(package: Path) -> None:
    (package / "screen.py").write_text("@compiled\ndef g(): ...\n")
    forget_stale(package)
    assert kept(package) == []


def test_a_package_that_cannot_be_written_to_is_left_alone(package: Path) -> None:
    (package / "__pycache__" / "compiled.stamp").unlink()
    (package / "__pycache__").rmdir()
    (package / "__pycache__").write_text("in the way")
    forget_stale(package)
