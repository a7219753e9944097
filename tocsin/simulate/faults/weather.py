"""The circumstances of a schedule: networks, limits and patience, each drawn from what may be met."""

from __future__ import annotations

from math import inf
from random import Random

from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.policies import placement, planner
from tocsin.broker.limits import BrokerLimits
from tocsin.client.rules import Rules
from tocsin.coordinator.balancing import Planners
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.data.control.pending import MOST_IDS
from tocsin.simulate.network import Conditions
from tocsin.simulate.system import Setup

CALM = Conditions(latency=0.005, spread=0.2, notice=2.0)


def setup(random: Random) -> Setup:
    """A setup with little room and little patience, so that limits are met within a minute."""
    policy = random.choice(["round-robin", "random", "least-loaded", "two-choices"])
    return Setup(
        conditions=conditions(random),
        brokers=_brokers(random),
        coordinator=_coordinator(random),
        rules=_rules(random),
        placement=lambda: placement(policy),
        planners=lambda: Planners(planner("migrate"), planner("shuffle"), _eager()),
        store_seconds=random.choice([0.0, 0.01, 0.3]),
        answer_seconds=random.choice([0.0, 0.01, 0.3, 1.0]),
        buffered=random.random() < 0.5,
        # Less than this, and a notice would be folded that nothing waits before.
        most_waiting=random.choice([12, 12, MOST_IDS]),
        read_seconds=random.choice([0.0, 0.0, 0.0, 2.0, 5.0]),
    )


def conditions(random: Random) -> Conditions:
    """A network, from a cable to a train in a tunnel."""
    return Conditions(
        latency=random.choice([0.001, 0.02, 0.1]),
        spread=random.choice([0.2, 0.6, 1.2]),
        bandwidth=random.choice([inf, inf, 20_000.0]),
        loss=random.choice([0.0, 0.0, 0.05]),
        breaks=random.choice([0.0, 0.0, 0.003]),
        notice=random.choice([0.5, 2.0, 6.0]),
    )


def _brokers(random: Random) -> BrokerLimits:
    return BrokerLimits(
        waiting_bytes=random.choice([1200, 1 << 20]),
        cache_bytes=random.choice([0, 2000, 1 << 20]),
        linger_seconds=random.choice([0.2, 1.0]),
        request_seconds=random.choice([2.0, 10.0]),
        stranger_seconds=15.0,
        missing_seconds=random.choice([0.5, 5.0]),
        pull_executions=random.choice([2, 1000]),
        pull_backends=random.choice([1, 256]),
        pull_bytes=random.choice([100, 1000, 4 << 20]),
        login_seconds=3.0,
        rate_seconds=20.0,
    )


def _coordinator(random: Random) -> CoordinatorLimits:
    return CoordinatorLimits(
        grace=random.choice([0.5, 2.0]),
        returning=4.0,
        preparing=random.choice([1.0, 5.0]),
        arriving=random.choice([1.0, 5.0]),
        presence=random.choice([0.5, 4.0, 20.0]),
        interval=1.0,
        in_flight=random.choice([1, 3, 100]),
        per_second=random.choice([2.0, 200.0]),
    )


def _rules(random: Random) -> Rules:
    return Rules(
        ask_seconds=2.0,
        login_seconds=random.choice([1.0, 4.0]),
        longest_wait=3.0,
        flood_wait=1.0,
        ack_seconds=random.choice([0.05, 0.5]),
        backlog_notes=random.choice([2, 1000]),
        window=random.choice([1, 16]),
    )


def _eager() -> Thresholds:
    return Thresholds(alpha=0.05, gamma=0.3, cool_down=2.0, settle=3.0, stale_after=5.0)
