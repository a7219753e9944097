"""What ``pip install tocsin`` brings is enough to subscribe and publish, and little; ``tocsin[cli]`` to ask servers."""

from __future__ import annotations

import asyncio
import shutil
import tomllib
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import tocsin
from tests.client.light_trial import PASSED, alone, run_trial

pytestmark = pytest.mark.process

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
MOST_BYTES = 8_000_000


def needed(lines: list[str] | None, known: dict[str, Distribution]) -> None:
    """Collects what is required, without anybody's extras, and all that this needs."""
    for requirement in map(Requirement, lines or ()):
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in known:
            known[requirement.name] = found = distribution(requirement.name)
            needed(found.requires, known)


def files(found: Distribution) -> Iterator[tuple[Path, Path]]:
    """Where each file of a package is, and where in an environment it belongs."""
    for file in found.files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            yield Path(str(found.locate_file(file))), Path(file)


def install(directory: Path, *extras: str) -> Path:
    """An environment as ``pip install`` makes it of the wheel, with the versions that are installed here."""
    venv.create(directory, with_pip=False)
    (packages,) = directory.glob("lib/python*/site-packages")
    project, known = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"], dict[str, Distribution]()
    needed(project["dependencies"], known)
    for extra in extras:
        needed(project["optional-dependencies"][extra], known)
    for found in known.values():
        for source, place in files(found):
            (packages / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, packages / place)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(tocsin.__file__).parent, packages / "tocsin", ignore=ignored)
    return directory


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a program gets."""
    return install(tmp_path_factory.mktemp("fresh"))


@pytest.fixture(scope="module")
def with_commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a person gets who asks servers."""
    return install(tmp_path_factory.mktemp("commands"), "cli")


def test_it_is_small(environment: Path) -> None:
    (packages,) = environment.glob("lib/python*/site-packages")
    assert sum(file.stat().st_size for file in packages.rglob("*") if file.is_file()) < MOST_BYTES


async def test_it_subscribes_and_publishes_without_arrow_and_numpy(environment: Path) -> None:
    assert await run_trial(environment / "bin" / "python") == PASSED


async def test_without_the_command_line_it_says_what_to_install(environment: Path, tmp_path: Path) -> None:
    assert await _refused(environment, tmp_path, "show", "datasets") == (
        "error: the command line needs typer, which is not installed: pip install 'tocsin[cli]'"
    )


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [(["broker"], "broker"), (["coordinator"], "coordinator"), (["data"], "data"), (["demo"], "all")],
)
async def test_a_command_that_needs_more_says_what_to_install(
    with_commands: Path, tmp_path: Path, arguments: list[str], extra: str
) -> None:
    assert f"pip install 'tocsin[{extra}]'" in await _refused(with_commands, tmp_path, *arguments)


@pytest.mark.parametrize(
    "command",
    [
        *("show datasets", "publish reports records.jsonl --patience 0", "subscribe Fires --user ann"),
        *("top --once", "balance plan", "balance drain north", "remove me"),
    ],
)
async def test_a_command_that_asks_a_server_needs_no_more(with_commands: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "records.jsonl").write_text('{"id": "a"}')
    nowhere = ["--set", "data.port=1", "--set", "coordinator.port=1"]
    assert " running there?" in await _refused(with_commands, tmp_path, *nowhere, *command.split())


async def _refused(environment: Path, directory: Path, *arguments: str) -> str:
    """What the command says as it fails."""
    process = await asyncio.create_subprocess_exec(
        *(str(environment / "bin" / "python"), "-m", "tocsin", *arguments),
        stderr=asyncio.subprocess.PIPE,
        cwd=directory,
        env=alone(),
    )
    _, said = await process.communicate()
    assert process.returncode == 1
    return " ".join(said.decode().split())
