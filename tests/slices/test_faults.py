"""Fault schedules of processing nodes: they hold, and the same seed is the same schedule."""

from __future__ import annotations

from typing import get_args

import pytest

from tocsin.simulate.faults.campaign import run_slice_schedule
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
