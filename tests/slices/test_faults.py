"""Fault schedules of processing nodes: they hold, and the same seed is the same schedule."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import get_args

import pytest
from typer.testing import CliRunner

from tocsin.cli.main import app
from tocsin.simulate.faults import campaign
from tocsin.simulate.faults.campaign import run_slice_schedule
from tocsin.simulate.faults.schedule import ScheduleOutcome
from tocsin.simulate.network import SimulatedConnection
from tocsin.slices.messages import FromHead, FromNode

SEEDS = 80
AT_ONCE = 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_every_record_is_processed_once_and_every_slice_has_one_owner(first: int) -> None:
    outcomes = [run_slice_schedule(seed) for seed in range(first, first + AT_ONCE)]
    assert {each.seed: each.wrong for each in outcomes if each.wrong} == {}
    assert all(each.notes for each in outcomes)
    assert any(each.moves for each in outcomes)


@pytest.mark.slow
def test_schedules_have_every_message_of_heads_and_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, send = set[type](), SimulatedConnection.send

    def note(self: SimulatedConnection, end: int, message: object) -> None:
        sent.add(type(message))
        send(self, end, message)

    monkeypatch.setattr(SimulatedConnection, "send", note)
    wanted = {*get_args(FromNode), *get_args(FromHead)}
    for seed in range(SEEDS):
        run_slice_schedule(seed)
        if wanted <= sent:
            return
    assert wanted - sent == set()


@pytest.mark.process
def test_the_same_seed_is_the_same_schedule_in_another_process() -> None:
    code = "from tocsin.simulate.faults.campaign import run_slice_schedule as run; print(run(3).fingerprint)"
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "5"},
    )
    assert told.stdout.strip() == run_slice_schedule(3).fingerprint != run_slice_schedule(4).fingerprint


def test_the_command_runs_the_schedules_of_slices() -> None:
    result = CliRunner().invoke(app, ["simulate", "faults", "--slices", "--seeds", "6", "--jobs", "1"])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith("all of 6 schedules hold (")


def test_a_schedule_that_does_not_hold_is_named_with_the_command_that_replays_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = ScheduleOutcome(5, "0", 1, 1, 1, 1, ["slice 3: lost [7]"])
    chosen = {"slices": [failed]}
    monkeypatch.setattr(campaign, "run_schedules", lambda first, count, jobs, subject: iter(chosen[subject]))
    result = CliRunner().invoke(app, ["simulate", "faults", "--slices", "--seeds", "1"])
    assert result.exit_code == 1
    assert "tocsin simulate faults --slices --first-seed 5 --seeds 1 --trace" in result.stdout


def test_one_kind_of_system_is_broken_at_a_time() -> None:
    result = CliRunner().invoke(app, ["simulate", "faults", "--slices", "--overlay"])
    assert result.exit_code != 0
