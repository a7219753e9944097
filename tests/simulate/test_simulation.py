"""Scenarios played: the same run is the same record, and counting deliveries changes nothing but the time it takes."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.balance.control.thresholds import Thresholds
from tocsin.simulate.policy import Policy
from tocsin.simulate.queueing import OutgoingQueue, quantile
from tocsin.simulate.record import SimulationRecord
from tocsin.simulate.scenarios.paper import Paper, paper
from tocsin.simulate.simulation import Level, Simulation

SMALL = Paper(subscribers=30, brokers=3, channels=2, backend_subscriptions=8, each=(2, 5), seconds=150, subscribing=30)
SMALL_RATE = Paper(**{**SMALL.__dict__, "rate": (40.0, 10.0), "capacity": 2_000.0})
# As low as they can, so that plans do not hang on where they may end.
EAGER = Policy(thresholds=Thresholds(chance=0, target=None, cool_down=20, settle=20))


def run(level: Level, policy: Policy = EAGER, seed: int = 3) -> SimulationRecord:
    return Simulation(paper(SMALL_RATE, seed), seed, policy, level).run()


def test_the_same_seed_is_the_same_record() -> None:
    assert run("counted").fingerprint == run("counted").fingerprint != run("counted", seed=4).fingerprint


@pytest.mark.parametrize("level", ["counted", "frames"])
def test_what_is_kept_for_a_verdict_changes_nothing(level: Level) -> None:
    judged = Simulation(paper(SMALL_RATE, 3), 3, EAGER, level, verdict=True)
    assert judged.run().fingerprint == run(level).fingerprint
    assert judged.system.store.read().held
    assert all(diary.open for diary in judged.system.diaries.values())


def test_counting_gives_the_loads_moves_and_plans_of_sending() -> None:
    counted, sent = run("counted"), run("frames")
    assert counted.moves == sent.moves > 0
    plans = [[(each.stage, each.moves) for each in record.decisions] for record in (counted, sent)]
    assert plans[0] == plans[1]
    assert np.array_equal(counted.series("subscribers"), sent.series("subscribers"))
    assert np.allclose(counted.loads, sent.loads, rtol=0.001)
    assert np.array_equal(counted.series("delivered"), sent.series("delivered"))


def test_balancing_evens_the_loads_out() -> None:
    balanced, left_alone = run("counted"), run("counted", Policy(balancing=False))
    assert left_alone.moves == 0
    assert left_alone.decisions == []
    assert balanced.cov[-1] < left_alone.cov[-1]
    assert balanced.highest[-1] < left_alone.highest[-1]


def test_the_nearest_broker_of_the_papers_scenario_is_that_of_many_for_one_and_of_few_for_others() -> None:
    scenario = paper(seed=1)
    sites = np.array([(broker.x, broker.y) for broker in scenario.brokers])
    people = np.stack([scenario.subscribers.x, scenario.subscribers.y], axis=-1)
    nearest = ((people[:, None] - sites[None]) ** 2).sum(axis=-1).argmin(axis=1)
    counts = np.bincount(nearest, minlength=10)
    assert counts.max() > 2_000
    assert counts.min() < 500
    assert 190_000 < len(scenario.subscribes.at) < 210_000
    assert max(scenario.subscribes.at) <= 480


def test_what_waits_behind_a_backlog_is_late_and_what_does_not_is_not() -> None:
    queue = OutgoingQueue(100.0)
    queue.add(0.0, 1.0, 99)
    assert quantile(queue.counts, 0.99) < 0.02
    queue.add(0.0, 1000.0, 100)
    assert queue.backlog(0.0) == pytest.approx(1001.0)
    assert queue.backlog(5.0) == pytest.approx(501.0)
    assert quantile(queue.counts, 0.99) == pytest.approx(9.8, rel=0.06)
    assert queue.backlog(11.0) == 0.0
