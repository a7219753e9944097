"""The images have what their commands need, listen on the ports they say, and run as nobody in particular."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch

import pytest

from tests.deploy.files import DEPLOY, SCRIPTS, check_command, settings_from, targets
from tests.pages import ROOT

TARGETS = targets()


def test_there_is_one_for_each_part() -> None:
    assert set(TARGETS) == {"broker", "coordinator", "data", "overlay"}


@pytest.mark.parametrize("name", TARGETS)
def test_it_listens_where_others_reach_it_and_is_asked_there(name: str) -> None:
    target = TARGETS[name]
    section = getattr(settings_from(target.environment), name)
    assert (section.host, target.ports) == ("0.0.0.0", {section.port})
    assert target.health == ["healthy", str(section.port)]
    assert target.command[:2] == ["tocsin", name]
    check_command(target.command)


@pytest.mark.parametrize("name", TARGETS)
def test_it_has_its_extra_and_runs_without_privileges(name: str) -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert name in TARGETS[name].extras <= set(known)
    assert TARGETS[name].user == "tocsin"


@pytest.mark.parametrize("name", ["coordinator", "data"])
def test_a_state_in_postgresql_can_be_reached(name: str) -> None:
    assert "postgresql" in TARGETS[name].extras


def test_what_is_copied_is_there_and_not_ignored() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    kept = [pattern[1:] for pattern in ignored if pattern.startswith("!")]
    needed = ["LICENSE", "README.md", "pyproject.toml", "requirements.lock", "tocsin", "deploy/bin"]
    assert ignored[0] == "*"
    assert [path for path in needed if not any(fnmatch(path, pattern) for pattern in kept)] == []
    assert [path for path in kept if not (ROOT / path).exists()] == []


def test_scripts_can_be_run() -> None:
    assert "healthy" in SCRIPTS
    assert all((DEPLOY / "bin" / name).stat().st_mode & 0o111 for name in SCRIPTS)
