"""Fault schedules of the overlay: they hold, and the same seed is the same schedule."""

from __future__ import annotations

from typing import get_args

import pytest

from tocsin.overlay.dialogue import Refused, ToEdge, ToHead, ToPublisher, ToSubscriber
from tocsin.overlay.messages import Body, Control, FromLink
from tocsin.simulate.faults.campaign import run_overlay_schedule
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
