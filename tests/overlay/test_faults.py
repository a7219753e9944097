"""Fault schedules of the overlay: they hold, and the same seed is the same schedule."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tocsin.cli.main import app
from tocsin.simulate.faults import campaign
from tocsin.simulate.faults.campaign import run_overlay_schedule
from tocsin.simulate.faults.schedule import ScheduleOutcome

SEEDS = 60
AT_ONCE = 10


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_nothing_is_lost_or_twice_and_nobody_is_busy_for_ever(first: int) -> None:
    outcomes = [run_overlay_schedule(seed) for seed in range(first, first + AT_ONCE)]
    assert {each.seed: each.wrong for each in outcomes if each.wrong} == {}
    assert all(each.notes for each in outcomes)
    assert any(each.moves for each in outcomes)


@pytest.mark.process
def test_the_same_seed_is_the_same_schedule_in_another_process() -> None:
    code = "from tocsin.simulate.faults.campaign import run_overlay_schedule as run; print(run(3).fingerprint)"
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "5"},
    )
    assert told.stdout.strip() == run_overlay_schedule(3).fingerprint != run_overlay_schedule(4).fingerprint


def test_the_command_runs_the_overlays_schedules() -> None:
    result = CliRunner().invoke(app, ["simulate", "faults", "--overlay", "--seeds", "1", "--jobs", "1"])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith("all of 1 schedules hold (")


def test_a_schedule_that_does_not_hold_is_named_with_the_command_that_replays_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = ScheduleOutcome(5, "0", 1, 1, 1, 1, ["s1 is lost"])
    chosen = {"overlay": [failed]}
    monkeypatch.setattr(campaign, "run_schedules", lambda first, count, jobs, subject: iter(chosen[subject]))
    result = CliRunner().invoke(app, ["simulate", "faults", "--overlay", "--seeds", "1"])
    assert result.exit_code == 1
    assert "tocsin simulate faults --overlay --first-seed 5 --seeds 1 --trace" in result.stdout
