"""Fault schedules of the overlay: they hold, and the same seed is the same schedule."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import get_args

import pytest
from typer.testing import CliRunner

from tocsin.cli.main import app
from tocsin.overlay.dialogue import Refused, ToEdge, ToHead, ToPublisher, ToSubscriber
from tocsin.overlay.messages import Body, Control, FromLink
from tocsin.simulate.faults import campaign
from tocsin.simulate.faults.campaign import run_overlay_schedule
from tocsin.simulate.faults.schedule import ScheduleOutcome
from tocsin.simulate.network import SimulatedConnection, SimulatedNetwork

SEEDS = 60
AT_ONCE = 10


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_nothing_is_lost_or_twice_and_nobody_is_busy_for_ever(first: int) -> None:
    outcomes = [run_overlay_schedule(seed) for seed in range(first, first + AT_ONCE)]
    assert {each.seed: each.wrong for each in outcomes if each.wrong} == {}
    assert all(each.notes for each in outcomes)
    assert any(each.moves for each in outcomes)


@pytest.mark.slow
def test_schedules_have_every_message_of_the_overlays_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, send, send_each = set[type](), SimulatedConnection.send, SimulatedNetwork.send_each

    def note(message: object) -> None:
        sent.update({type(message), type(message.body)} if isinstance(message, Control) else {type(message)})

    def noting(self: SimulatedConnection, end: int, message: object) -> None:
        note(message)
        send(self, end, message)

    def noting_each(self: SimulatedNetwork, links: list[SimulatedConnection], end: int, message: object) -> None:
        note(message)
        send_each(self, links, end, message)

    monkeypatch.setattr(SimulatedConnection, "send", noting)
    monkeypatch.setattr(SimulatedNetwork, "send_each", noting_each)
    kinds = [FromLink, Body, ToSubscriber, ToPublisher, ToEdge, ToHead]
    # Nobody says what must be refused.
    wanted = {message for kind in kinds for message in get_args(kind)} - {Refused}
    for seed in range(SEEDS):
        run_overlay_schedule(seed)
        if wanted <= sent:
            return
    assert wanted - sent == set()


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
