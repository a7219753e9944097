"""Schedules of each kind of system, as the command runs them: the same seed is the same schedule, and one that does not
hold is named."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from tocsin.cli.main import app
from tocsin.simulate.faults import campaign
from tocsin.simulate.faults.campaign import RUNS, Subject
from tocsin.simulate.faults.schedule import ScheduleOutcome

each_kind = pytest.mark.parametrize("subject", Subject)
OPTIONS = {Subject.BROKERS: [], Subject.OVERLAY: ["--overlay"], Subject.SLICES: ["--slices"]}


@pytest.mark.process
@each_kind
def test_the_same_seed_is_the_same_schedule_in_another_process(subject: Subject) -> None:
    """Of brokers one in which somebody who has left comes back with a new token."""
    code = f"from tocsin.simulate.faults.campaign import RUNS; print(RUNS['{subject}'](9).fingerprint)"
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "5"},
    )
    run = RUNS[subject]
    assert told.stdout.strip() == run(9).fingerprint != run(4).fingerprint


@pytest.mark.parametrize(
    ("subject", "schedules"), [(Subject.BROKERS, 6), (Subject.OVERLAY, 1), (Subject.SLICES, 6)], ids=list(Subject)
)
def test_the_last_line_is_the_verdict(subject: Subject, schedules: int) -> None:
    arguments = ["simulate", "faults", *OPTIONS[subject], "--seeds", str(schedules), "--jobs", "1"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith(f"all of {schedules} schedules hold (")


@each_kind
def test_a_schedule_that_does_not_hold_is_named_with_the_command_that_replays_it(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(first: int, count: int, jobs: int, chosen: Subject) -> Iterator[ScheduleOutcome]:
        assert (first, count, chosen) == (5, 1, subject)
        yield ScheduleOutcome(5, "0", 1, 1, 1, 1, ["p1 is lost"])

    monkeypatch.setattr(campaign, "run_schedules", fail)
    options = [*OPTIONS[subject], "--first-seed", "5", "--seeds", "1"]
    result = CliRunner().invoke(app, ["simulate", "faults", *options])
    assert result.exit_code == 1
    assert "seed 5: p1 is lost" in result.stdout
    assert f"tocsin simulate faults {' '.join(options)} --trace" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("1 of 1 schedules do not hold (")


def test_one_kind_of_system_is_broken_at_a_time() -> None:
    result = CliRunner().invoke(app, ["simulate", "faults", "--slices", "--overlay"])
    assert result.exit_code != 0
