"""The units start commands that exist, with settings that exist, and are what systemd understands."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY, check_command, settings_from
from tests.pages import ROOT

UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
NAMES = [unit.name for unit in UNITS]


def _said(unit: Path) -> dict[str, list[str]]:
    """What a unit says, by the names of its directives."""
    said = defaultdict(list)
    for line in unit.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            said[name].append(value)
    return said


def test_there_is_one_for_each_part() -> None:
    parts = ["broker@", "coordinator", "data-standby", "data", "overlay-edge@", "overlay-head@", "worker@"]
    assert [f"tocsin-{part}.service" for part in parts] == NAMES


@pytest.mark.parametrize("unit", UNITS, ids=NAMES)
def test_it_starts_a_command_with_settings_that_exist_and_starts_it_again(unit: Path) -> None:
    said = _said(unit)
    [command] = said["ExecStart"]
    check_command(shlex.split(command))
    given = [part for line in said["Environment"] for part in line.replace("%i", "north").split()]
    settings = settings_from(dict(part.split("=", 1) for part in given))
    if "@" in unit.name:
        assert "north" in (settings.broker.name, settings.overlay.name, settings.worker.name)
    # A worker that has ended well was not needed.
    again = "on-failure" if unit.name == "tocsin-worker@.service" else "always"
    assert (said["Restart"], said["StartLimitIntervalSec"]) == ([again], ["0"])


@pytest.mark.parametrize("unit", UNITS, ids=NAMES)
def test_it_may_write_where_it_keeps_something_and_nowhere_else(unit: Path) -> None:
    said = _said(unit)
    assert (said["ProtectSystem"], said["CapabilityBoundingSet"], said["UMask"]) == (["strict"], [""], ["0077"])
    states = {f"/var/lib/{name}" for line in said["StateDirectory"] for name in line.split()}
    directories = [
        part.partition("=")[2] for line in said["Environment"] for part in line.split() if "_DIRECTORY=" in part
    ]
    assert set(directories) <= states
    assert set(said["WorkingDirectory"]) <= states
    assert said["DynamicUser"] == ["yes"] or said["User"] == ["tocsin"]


def test_a_worker_has_the_data_clusters_directory_and_user_and_time_to_give_its_slices_away() -> None:
    worker, data = (_said(DEPLOY / "systemd" / f"tocsin-{name}.service") for name in ("worker@", "data"))
    assert (worker["User"], worker["StateDirectory"]) == (data["User"], data["StateDirectory"])
    assert int(worker["TimeoutStopSec"][0]) >= 60
    assert worker["KillMode"] == ["mixed"]


def test_one_that_stands_by_is_the_data_cluster_but_for_the_option() -> None:
    standby, data = (_said(DEPLOY / "systemd" / f"tocsin-{name}.service") for name in ("data-standby", "data"))
    [command] = data["ExecStart"]
    assert standby.pop("ExecStart") == [f"{command} --standby"]
    assert standby.pop("Conflicts") == ["tocsin-data.service"]
    del standby["Description"]
    assert all(data[name] == value for name, value in standby.items())


def test_the_user_has_the_same_number_on_all_machines_and_in_the_images() -> None:
    (line,) = (line for line in (DEPLOY / "systemd/sysusers.conf").read_text("utf-8").splitlines() if line[0] == "u")
    _, name, number, *_ = line.split()
    assert f"useradd --uid {number} " in (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert _said(DEPLOY / "systemd/tocsin-data.service")["User"] == [name]


def test_tokens_are_made_with_the_settings_of_the_units() -> None:
    lines = [
        line for line in (ROOT / "docs/scaling.md").read_text("utf-8").splitlines() if line.startswith("$ sudo -u")
    ]
    for part, line in zip(("coordinator", "data"), lines, strict=True):
        words = shlex.split(line)[1:]
        [environment, *_] = _said(DEPLOY / f"systemd/tocsin-{part}.service")["Environment"]
        assert words[:3] == ["sudo", "-u", "tocsin"]
        assert words[3:5] == environment.split()
        check_command(words[5:])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=NAMES)
def test_systemd_understands_it(unit: Path, tmp_path: Path) -> None:
    program = tmp_path / "tocsin"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text(encoding="utf-8").replace("/opt/tocsin/bin/tocsin", str(program)), encoding="utf-8")
    checked = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=60)
    assert [line for line in checked.stderr.splitlines() if unit.stem.partition("@")[0] in line] == []
