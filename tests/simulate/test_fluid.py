"""Rates only."""

from __future__ import annotations

from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.simulate.fluid import Fluid
from tocsin.simulate.policy import Policy
from tocsin.simulate.record import SimulationRecord

SMALL = InstanceKind(300, 5, 60, (2, 6), skew=1.0)


def run(policy: Policy, seed: int = 1) -> SimulationRecord:
    return Fluid(*make(SMALL, 1), seed, policy, seconds=600).run()


def test_balancing_evens_the_loads_out_and_the_same_seed_is_the_same_record() -> None:
    eager = Policy(thresholds=Thresholds())
    balanced, alone = run(eager), run(Policy(balancing=False))
    assert alone.moves == 0 < balanced.moves
    assert balanced.cov[-1] < alone.cov[-1] / 2
    assert balanced.loads.tolist() == run(eager).loads.tolist() != run(eager, 2).loads.tolist()
    assert sum(balanced.samples[-1].subscribers) == 300
