"""Fault schedules: they hold, and the same seed is the same schedule."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tocsin.cli.main import app
from tocsin.model import control
from tocsin.simulate.faults.campaign import CampaignResult, run_schedule
from tocsin.simulate.faults.schedule import ScheduleOutcome
from tocsin.simulate.network import SimulatedConnection

SEEDS = 200
AT_ONCE = 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_nothing_is_lost_twice_or_astray_whatever_happens(first: int) -> None:
    outcomes = [run_schedule(seed) for seed in range(first, first + AT_ONCE)]
    assert {each.seed: each.wrong for each in outcomes if each.wrong} == {}
    # Now and then a schedule has everybody leave before anything is found.
    assert sum(each.notes > 0 for each in outcomes) >= AT_ONCE - 2
    assert any(each.moves for each in outcomes)


@pytest.mark.slow
def test_schedules_have_every_message_of_the_control_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, send = set[type](), SimulatedConnection.send

    def note(self: SimulatedConnection, end: int, message: object) -> None:
        sent.add(type(message))
        send(self, end, message)

    monkeypatch.setattr(SimulatedConnection, "send", note)
    # Brokers show their token in the handshake.
    wanted = set(control.ControlMessage.__subclasses__()) - {control.Token}
    for seed in range(SEEDS):
        run_schedule(seed)
        if wanted <= sent:
            return
    assert wanted - sent == set()


def test_a_trace_shows_every_step() -> None:
    result = CliRunner().invoke(app, ["simulate", "faults", "--seeds", "1", "--trace"])
    assert "*** everything heals" in result.stdout
    assert len(result.stdout.splitlines()) > 500


def test_the_fingerprint_of_many_is_that_of_each() -> None:
    one, other = CampaignResult(), CampaignResult()
    for result, prints in ((one, "ab"), (other, "ba")):
        for text in prints:
            result.add(ScheduleOutcome(0, text, 0, 0, 0, 0))
    assert one.fingerprint != other.fingerprint
