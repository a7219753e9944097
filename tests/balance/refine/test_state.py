"""What a refinement's arrays say after any number of transfers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.balance.enumeration import tiny
from tocsin.balance.refine.state import alone, missing, needs, refinement_state, subscription_rows, transfer


@given(seed=st.integers(0, 10_000), capacities=st.booleans())
def test_transfers_lead_to_the_state_of_the_assignment(seed: int, capacities: bool) -> None:
    workload, now = tiny(seed, capacities=capacities)
    rows, state = subscription_rows(workload), refinement_state(workload, now)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        transfer(rows, state, int(rng.integers(workload.subscribers)), int(rng.integers(workload.brokers)))
    again = refinement_state(workload, state.assignment)
    assert (state.held == again.held).all()
    assert (state.load == again.load).all()


@given(seed=st.integers(0, 10_000))
def test_a_transfer_costs_what_is_missing_and_saves_what_was_held_alone(seed: int) -> None:
    workload, now = tiny(seed)
    rows, state = subscription_rows(workload), refinement_state(workload, now)
    i, there = seed % workload.subscribers, seed % workload.brokers
    if there == now[i]:
        return
    before, own = state.load.copy(), rows.own[i]
    gained, saved = own + missing(rows, state, i, there), own + alone(rows, state, i)
    transfer(rows, state, i, there)
    assert state.load[there] - before[there] == gained
    assert before[now[i]] - state.load[now[i]] == saved


@given(seed=st.integers(0, 10_000))
def test_needs_are_what_is_missing_on_each_broker(seed: int) -> None:
    workload, now = tiny(seed)
    rows, state = subscription_rows(workload), refinement_state(workload, now)
    need = np.empty(workload.brokers)
    needs(rows, state, 0, need)
    assert need.tolist() == [missing(rows, state, 0, j) for j in range(workload.brokers)]


def test_somebody_can_come_from_nowhere() -> None:
    workload, now = tiny(3)
    rows, state = subscription_rows(workload), refinement_state(workload, np.full_like(now, -1))
    for i, broker in enumerate(now):
        transfer(rows, state, i, int(broker))
    assert (state.load == refinement_state(workload, now).load).all()
