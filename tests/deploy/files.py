"""What is in deploy/, as tests read it, and what any of it must keep to: settings and commands that exist."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from tests.cli.program import command_line
from tests.pages import ROOT
from tocsin.settings import Settings, load
from tocsin.settings.keys import KEYS

DEPLOY: Final = ROOT / "deploy"
SCRIPTS: Final = {path.name for path in (DEPLOY / "bin").iterdir()}
_VARIABLES: Final = {key.variable for key in KEYS.values()}
# Which commands read, and which are no settings.
_OPTIONS: Final = {"TOCSIN_CONFIG", "TOCSIN_COORDINATOR"}
_KUSTOMIZE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tocsin/kustomize/kustomize"
_DEFAULT: Final = re.compile(r"\$\{\w+:([-?])([^}]*)\}")
_INSTRUCTION: Final = re.compile(r"^([A-Z]+) (.*)$")


class Target(NamedTuple):
    """An image that the Dockerfile makes."""

    extras: set[str]
    environment: dict[str, str]
    ports: set[int]
    command: list[str]
    health: list[str]
    user: str


def documents(path: Path) -> list[dict[str, Any]]:
    """Those of a YAML file."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def kustomized(folder: Path) -> list[dict[str, Any]]:
    """The objects that ``kubectl apply --kustomize`` would apply."""
    if not _KUSTOMIZE.exists():
        pytest.skip("there is no kustomize: scripts/ensure-kustomize builds it, with a Go that is newer than Debian's")
    command = [str(_KUSTOMIZE), "build", str(folder)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert built.returncode == 0, built.stderr
    return list(yaml.safe_load_all(built.stdout))


def defaulted(value: Any) -> Any:
    """A part of the compose file with its variables as they are where nobody sets them; a password is ``secret``."""
    if isinstance(value, dict):
        return {name: defaulted(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [defaulted(entry) for entry in value]
    if isinstance(value, str):
        return _DEFAULT.sub(lambda found: found[2] if found[1] == "-" else "secret", value)
    return value


def settings_from(environment: Mapping[str, str]) -> Settings:
    """The settings that these variables make, all of which must be known and allowed."""
    named = {name for name in environment if name.startswith("TOCSIN_")}
    assert named - _VARIABLES - _OPTIONS == set()
    return load(environ={name: str(environment[name]) for name in named - _OPTIONS})


def check_command(command: Sequence[str]) -> None:
    """Fails unless this is a script of deploy/bin, or ``tocsin`` with arguments it takes."""
    program, *arguments = command
    if Path(program).name != "tocsin":
        assert program in SCRIPTS
        return
    found = command_line()
    while hasattr(found, "resolve_command"):
        context = found.make_context("tocsin", arguments)
        _, found, arguments = found.resolve_command(context, [*context._protected_args, *context.args])
    found.make_context("tocsin", arguments)


def targets() -> dict[str, Target]:
    """The images by their names: the stages that end with a command."""
    stages = re.split(r"^FROM .* AS (\w+)$", _dockerfile(), flags=re.MULTILINE)[1:]
    pairs = zip(stages[::2], stages[1::2], strict=True)
    return {name: _target(text) for name, text in pairs if re.search(r"^CMD ", text, re.MULTILINE)}


def _dockerfile() -> str:
    return (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")


def _target(text: str) -> Target:
    said = dict(_instructions(text))
    health = said["HEALTHCHECK"].partition(" CMD ")[2]
    return Target(
        extras={extra for group in re.findall(r"\.whl\)\[([\w,]+)\]", text) for extra in group.split(",")},
        environment=dict(part.split("=", 1) for part in said["ENV"].split()),
        ports={int(port) for port in said["EXPOSE"].split()},
        command=yaml.safe_load(said["CMD"]),
        health=yaml.safe_load(health),
        user=said["USER"],
    )


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    return (found.groups() for line in text.splitlines() if (found := _INSTRUCTION.match(line)))  # type: ignore[misc]
