"""Whoever was away is given what was found meanwhile: counting it comes to what sending it does."""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.balance.control.thresholds import Thresholds
from tocsin.broker.cache import LeastRecentlyUsed, ResultCache
from tocsin.broker.limits import BrokerLimits
from tocsin.simulate.policy import Policy
from tocsin.simulate.record import SimulationRecord
from tocsin.simulate.scenario import Scenario, Visits
from tocsin.simulate.scenarios.city import CityScenario, city
from tocsin.simulate.scenarios.paper import Paper, paper
from tocsin.simulate.simulation import INTERVAL, Level, Simulation
from tocsin.simulate.weightcache import Weight, WeightCache

SMALL = Paper(
    subscribers=30,
    brokers=3,
    channels=3,
    backend_subscriptions=8,
    each=(2, 5),
    seconds=204,
    subscribing=30,
    rate=(60.0, 10.0),
)
AMPLE: Final = 1 << 20
LEVELS: Final[tuple[Level, Level]] = ("counted", "frames")
STILL, EAGER = Policy(balancing=False), Policy(thresholds=Thresholds(chance=0, target=None, cool_down=20, settle=20))


def coming_and_going(seed: int) -> Scenario:
    """Everybody is away for some time, half of them twice, and never comes or goes just when something is executed."""
    random, scenario = Random(seed), paper(SMALL, seed)
    logouts, logins = Visits([], []), Visits(list(scenario.logins.at), list(scenario.logins.subscriber))
    for subscriber in range(SMALL.subscribers):
        for begin in (40, 110)[: 1 + subscriber % 2]:
            left = begin + random.randrange(20)
            logouts.at.append(left + 0.5)
            logins.at.append(left + random.randrange(5, 45) + 0.5)
            logouts.subscriber.append(subscriber)
            logins.subscriber.append(subscriber)
    return msgspec.structs.replace(scenario, logouts=logouts, logins=logins)


def played(level: Level, policy: Policy, cache_bytes: int = AMPLE, seed: int = 4) -> SimulationRecord:
    limits = BrokerLimits(report_seconds=5.0, cache_bytes=cache_bytes)
    return Simulation(coming_and_going(seed), seed, policy, level, brokers=limits).run()


def totals(record: SimulationRecord, column: str) -> list[float]:
    """Bytes of each broker over the whole run."""
    return [float(each) * INTERVAL for each in record.series(column).sum(axis=0)]


@pytest.mark.parametrize("seed", [pytest.param(4, marks=pytest.mark.slow), 5])
def test_counting_gives_the_totals_of_sending(seed: int) -> None:
    counted, sent = (played(level, STILL, seed=seed) for level in LEVELS)
    assert counted.deliveries == sent.deliveries
    assert totals(counted, "delivered") == pytest.approx(totals(sent, "delivered"), rel=1e-9)
    assert totals(counted, "brought") == pytest.approx(totals(sent, "brought"), rel=1e-9)
    assert np.allclose(counted.loads, sent.loads, rtol=0.001)


@pytest.mark.parametrize("cache_bytes", [pytest.param(20_000, marks=pytest.mark.slow), 0])
def test_what_the_cache_has_lost_is_brought_again(cache_bytes: int) -> None:
    ample, counted, sent = played("counted", STILL), *(played(level, STILL, cache_bytes) for level in LEVELS)
    assert counted.deliveries == sent.deliveries == ample.deliveries
    assert sum(totals(counted, "brought")) > 1.2 * sum(totals(ample, "brought"))
    # Those who come back at the same time share a pull when they are sent it.
    assert totals(counted, "brought") == pytest.approx(totals(sent, "brought"), rel=0.03)


@pytest.mark.slow
def test_whoever_was_moved_while_away_is_given_it_by_the_broker_it_returns_to() -> None:
    counted, sent = (played(level, EAGER) for level in LEVELS)
    assert counted.moves == sent.moves > 0
    plans = [[(each.stage, each.moves) for each in record.decisions] for record in (counted, sent)]
    assert plans[0] == plans[1]
    assert counted.deliveries == sent.deliveries
    for column in ("delivered", "brought"):
        assert totals(counted, column) == pytest.approx(totals(sent, column), rel=0.01)


@pytest.mark.slow
def test_whoever_moves_again_and_again_without_being_away_is_given_nothing_twice() -> None:
    scenario, often = (
        city(CityScenario(subscribers=40, seconds=900), 1),
        Policy(thresholds=Thresholds(chance=0, target=None, cool_down=20)),
    )
    moved, unmoved = (Simulation(scenario, 1, policy).run() for policy in (often, STILL))
    assert moved.moves > 30
    assert moved.deliveries == pytest.approx(unmoved.deliveries, rel=0.002)


Steps = st.lists(st.tuples(st.sampled_from(["put", "put", "put", "ask", "close", "open"]), st.integers(1, 4)))


@given(Steps, st.integers(0, 3000))
def test_a_cache_that_only_writes_down_knows_what_the_real_one_has(steps: list[tuple[str, int]], limit: int) -> None:
    kept, cache = WeightCache(limit), ResultCache(limit, LeastRecentlyUsed())
    for execution, (step, be) in enumerate(steps):
        match step:
            case "put":
                kept.write(0.0, execution, np.array([be + 1, be]), np.array([200, 100 * be]))
                cache.put(0.0, be, execution, bytes(100 * be))
                cache.put(0.0, be + 1, execution, bytes(200))
            case "ask":
                assert kept.has(be, execution // 2) == (cache.after(be, execution // 2) is not None)
            case "close":
                kept.close(be)
                cache.close(be)
            case _:
                kept.open(be, execution)
                cache.open(be, execution)
    for be in range(1, 6):
        assert kept.has(be, 0) == (cache.after(be, 0) is not None)
    assert kept.bytes == cache.bytes


def test_a_weight_is_as_long_as_it_says_and_takes_no_room() -> None:
    assert len(Weight.of(1 << 40)) == 1 << 40
