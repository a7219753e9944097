"""A workload that does not change comes to rest: after some rounds there is nothing more to do, and nobody goes to and
fro on the way."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tocsin.balance.control.controller import Controller
from tocsin.balance.control.observation import Observation
from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.live.workload import LiveWorkload
from tocsin.balance.planners.gsh import GSH
from tocsin.balance.planners.ldm import LDM
from tocsin.balance.planners.migrate import Migrate
from tocsin.balance.planners.planner import Planner
from tocsin.balance.planners.sdm import SDM
from tocsin.balance.planners.shuffle import Shuffle

ROUND = 20.0
WINDOW = 200.0
QUIET = int(WINDOW / ROUND) + 2  # rounds without a plan after which nobody is settling any more
MOST = 200

kinds = st.builds(
    InstanceKind,
    subscribers=st.integers(1, 60),
    brokers=st.integers(1, 6),
    subscriptions=st.integers(10, 40),
    each=st.sampled_from([(0, 3), (1, 8), (5, 10)]),
    popularity=st.sampled_from([0.0, 1.0]),
    skew=st.sampled_from([0.0, 0.7, 2.0]),
)


class Rounds:
    """A controller that runs on a live workload, and who came where when."""

    def __init__(self, live: LiveWorkload, controller: Controller) -> None:
        self.live, self.controller = live, controller
        self.now = 0.0
        self.plans = 0
        self.visits: dict[int, list[tuple[float, int]]] = defaultdict(list)
        for subscriber in live.subscribers.tolist():
            self.visits[subscriber].append((0.0, live.broker_of(subscriber)))

    def run(self, draining: tuple[int, ...] = ()) -> bool:
        """One round; whether there was a plan."""
        self.now += ROUND
        reported = dict.fromkeys(self.live.brokers.tolist(), self.now)
        decision = self.controller.decide(self.now, Observation.of(self.live, reported, draining=draining))
        if decision.moves is None:
            return False
        self.live.apply(decision.moves)
        self.controller.carried_out(self.now, decision.moves)
        for subscriber, broker in zip(decision.moves.subscriber, decision.moves.destination, strict=True):
            self.visits[int(subscriber)].append((self.now, int(broker)))
        self.plans += 1
        return True

    def rest(self) -> bool:
        """Rounds until nothing has happened for longer than anybody settles; whether it came to that."""
        quiet = 0
        for _ in range(MOST):
            quiet = 0 if self.run() else quiet + 1
            if quiet == QUIET:
                return True
        return False

    def returns(self) -> list[int]:
        """Who came to a broker where it was already within the window."""
        return [
            subscriber
            for subscriber, visits in self.visits.items()
            for at, (now, broker) in enumerate(visits)
            for left, (_, before) in zip(visits[1:at], visits[: at - 1], strict=False)
            if before == broker and now - left[0] < WINDOW
        ]


@pytest.mark.parametrize(
    ("migration", "shuffle"),
    [(LDM(), GSH()), (SDM(), GSH()), (LDM(alpha=0.02), SDM(alpha=0.02)), (Migrate(), Shuffle())],
    ids=["ldm-gsh", "sdm-gsh", "fine", "ours"],
)
@settings(max_examples=examples(40))
@given(kind=kinds, seed=st.integers(0, 2**20), max_moves=st.sampled_from([None, 1, 5]), gain=st.sampled_from([0, 500]))
def test_a_static_workload_comes_to_rest(
    migration: Planner, shuffle: Planner, kind: InstanceKind, seed: int, max_moves: int | None, gain: float
) -> None:
    thresholds = Thresholds(cool_down=ROUND, settle=WINDOW, max_moves=max_moves, min_gain=gain, max_over_mean=1.3)
    live = LiveWorkload.of(*make(kind, seed))
    highest = live.figures().max
    rounds = Rounds(live, Controller(migration, shuffle, thresholds))
    assert rounds.rest()
    assert not any(rounds.run() for _ in range(QUIET))
    assert rounds.returns() == []
    assert live.figures().max <= highest


@settings(max_examples=examples(20))
@given(kind=kinds.filter(lambda kind: kind.brokers > 1), seed=st.integers(0, 2**20))
def test_a_broker_drains_within_the_rounds_its_subscribers_need(kind: InstanceKind, seed: int) -> None:
    live = LiveWorkload.of(*make(kind, seed))
    rounds = Rounds(live, Controller(LDM(), LDM(), Thresholds(max_moves=5)))
    leaving = int(np.argmax(live.population))
    for _ in range(-(-int(live.population[leaving]) // 5)):
        rounds.run(draining=(leaving,))
    assert live.population[leaving] == 0
