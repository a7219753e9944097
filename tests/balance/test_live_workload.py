"""The live workload: whatever is written into it, its loads are those of the workload that it then is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.examples import examples
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.live.workload import LiveWorkload
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.plan import Moves, Reason
from tocsin.balance.model.workload import Int32s, Int64s, check
from tocsin.balance.placement.paper import LeastLoaded, Nearest
from tocsin.balance.placement.placement import Newcomer, View
from tocsin.balance.placement.twochoices import TwoChoices
from tocsin.errors import InvalidError, NotFoundError

SMALL = InstanceKind(200, 4, 60, (0, 8))


def assert_current(live: LiveWorkload) -> None:
    """The loads that were kept up to date are those of the workload, counted from nothing."""
    snapshot = live.snapshot()
    if len(live.brokers):
        check(snapshot.workload, snapshot.assignment)
    counted = Loads(snapshot.workload, snapshot.assignment)
    kept = live.figures()
    assert np.array_equal(kept.incoming, counted.incoming)
    assert np.array_equal(kept.outgoing, counted.outgoing)
    assert np.array_equal(kept.loads, counted.utilisation)
    assert np.array_equal(live.population, np.bincount(snapshot.assignment, minlength=len(live.brokers)))
    away = suspended(live)
    assert np.array_equal(live.view().idle[live.brokers], View.of(counted).idle - away)
    assert np.array_equal(live.view().population[live.brokers], live.population - away)


def suspended(live: LiveWorkload) -> Int64s:
    """How many are suspended on each broker, one by one."""
    resting = [live.broker_of(i) for i in live.subscribers.tolist() if live._idle.which_suspended(np.array([i])).any()]
    return np.array([resting.count(broker) for broker in live.brokers.tolist()], np.int64)


class Operations(RuleBasedStateMachine):
    """Any operations in any order, on a live workload and on plain dictionaries beside it."""

    @initialize()
    def begin(self) -> None:
        self.live = LiveWorkload()
        self.brokers: set[int] = set()
        self.where: dict[int, int] = {}
        self.holds: dict[int, set[int]] = {}
        self.away: set[int] = set()
        self.rates: dict[int, int] = {}

    @rule(capacity=st.sampled_from([1.0, 1.0, 2.0]))
    def a_broker_comes(self, capacity: float) -> None:
        broker = self.live.add_broker(capacity)
        assert broker not in self.brokers
        self.brokers.add(broker)

    @precondition(lambda self: self.brokers)
    @rule(data=st.data())
    def a_broker_leaves_when_nobody_is_on_it(self, data: st.DataObject) -> None:
        broker = data.draw(st.sampled_from(sorted(self.brokers)))
        if broker in self.where.values():
            with pytest.raises(InvalidError, match="drain it first"):
                self.live.remove_broker(broker)
        else:
            self.live.remove_broker(broker)
            self.brokers.discard(broker)

    @precondition(lambda self: self.brokers)
    @rule(data=st.data())
    def a_subscriber_comes(self, data: st.DataObject) -> None:
        broker = data.draw(st.sampled_from(sorted(self.brokers)))
        subscriber = self.live.add_subscriber(broker)
        assert subscriber not in self.where
        self.where[subscriber], self.holds[subscriber] = broker, set()

    @precondition(lambda self: self.where)
    @rule(data=st.data())
    def a_subscriber_leaves(self, data: st.DataObject) -> None:
        subscriber = data.draw(st.sampled_from(sorted(self.where)))
        self.live.remove_subscriber(subscriber)
        del self.where[subscriber], self.holds[subscriber]
        self.away.discard(subscriber)

    @precondition(lambda self: self.where)
    @rule(data=st.data())
    def people_are_suspended(self, data: st.DataObject) -> None:
        who = data.draw(st.lists(st.sampled_from(sorted(self.where)), max_size=3))
        self.live.suspend(who)
        self.away.update(who)
        self.holds.update((subscriber, set()) for subscriber in who)

    @precondition(lambda self: self.where)
    @rule(data=st.data())
    def a_subscriber_is_resumed(self, data: st.DataObject) -> None:
        subscriber = data.draw(st.sampled_from(sorted(self.where)))
        self.live.resume(subscriber)
        self.away.discard(subscriber)

    @precondition(lambda self: self.where)
    @rule(data=st.data())
    def a_subscriber_moves(self, data: st.DataObject) -> None:
        subscriber = data.draw(st.sampled_from(sorted(self.where)))
        self.where[subscriber] = data.draw(st.sampled_from(sorted(self.brokers)))
        self.live.move(subscriber, self.where[subscriber])

    @rule(rate=st.integers(0, 10**12))
    def a_subscription_comes(self, rate: int) -> None:
        subscription = self.live.add_subscription(rate)
        assert subscription not in self.rates
        self.rates[subscription] = rate

    @precondition(lambda self: self.rates)
    @rule(data=st.data())
    def a_subscription_leaves_when_nobody_holds_it(self, data: st.DataObject) -> None:
        subscription = data.draw(st.sampled_from(sorted(self.rates)))
        if any(subscription in held for held in self.holds.values()):
            with pytest.raises(InvalidError, match="unsubscribe them first"):
                self.live.remove_subscription(subscription)
        else:
            self.live.remove_subscription(subscription)
            del self.rates[subscription]

    @precondition(lambda self: self.rates)
    @rule(data=st.data(), rate=st.integers(0, 10**12))
    def rates_change(self, data: st.DataObject, rate: int) -> None:
        which = data.draw(st.lists(st.sampled_from(sorted(self.rates)), min_size=1, max_size=4))
        wanted = [rate + n for n in range(len(which))]
        self.live.set_rates(which, wanted)
        self.rates.update(zip(which, wanted, strict=True))

    @precondition(lambda self: self.where and self.rates)
    @rule(data=st.data())
    def people_subscribe_and_unsubscribe(self, data: st.DataObject) -> None:
        pairs = [(i, k) for i in sorted(set(self.where) - self.away) for k in sorted(self.rates)]
        drawn = data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12)) if pairs else []
        more = [(i, k) for i, k in drawn if k not in self.holds[i]]
        less = [(i, k) for i, k in drawn if k in self.holds[i]]
        self.live.subscribe([i for i, _ in more], [k for _, k in more])
        self.live.unsubscribe([i for i, _ in less], [k for _, k in less])
        for i, k in drawn:
            self.holds[i] ^= {k}

    @invariant()
    def the_live_workload_is_what_was_written(self) -> None:
        assert set(self.live.brokers.tolist()) == self.brokers
        assert set(self.live.subscribers.tolist()) == set(self.where)
        assert {k: self.live.rate_of(k) for k in self.live.subscriptions.tolist()} == self.rates
        for subscriber, broker in self.where.items():
            assert self.live.broker_of(subscriber) == broker
            assert set(self.live.held_by(subscriber).tolist()) == self.holds[subscriber]
            assert self.live._idle.which_suspended(np.array([subscriber])).tolist() == [subscriber in self.away]
        assert_current(self.live)


TestOperations = Operations.TestCase
TestOperations.settings = settings(max_examples=examples(25), stateful_step_count=30, deadline=None)


def test_loads_stay_exact_over_thousands_of_operations() -> None:
    rng = np.random.default_rng(7)
    workload, start = make(SMALL, seed=7)
    live = LiveWorkload.of(workload, start)
    for step in range(4_000):
        subscriber = int(rng.choice(live.subscribers))
        match rng.integers(0, 7):
            case 0:
                live.move(subscriber, int(rng.integers(0, 4)))
            case 6:
                live.suspend(rng.choice(live.subscribers, 3))
            case 1:
                live.remove_subscriber(subscriber)
            case 2:
                fresh = live.add_subscriber(int(rng.integers(0, 4)))
                live.subscribe(fresh, rng.choice(60, int(rng.integers(0, 30)), replace=False))
            case 3:
                held = live.held_by(subscriber)
                live.unsubscribe(subscriber, held[: len(held) // 2])
            case 4:
                live.resume(subscriber)
                live.subscribe(subscriber, np.setdiff1d(rng.choice(60, 5, replace=False), live.held_by(subscriber)))
            case _:
                live.set_rates(rng.choice(60, 3, replace=False), rng.integers(0, 10**9, 3))
        if step % 200 == 0:
            assert_current(live)
    assert_current(live)


def test_numbers_of_what_has_left_are_given_out_again() -> None:
    live = LiveWorkload()
    broker = live.add_broker()
    wanted = [live.add_subscription(1) for _ in range(3)]
    everybody = [live.add_subscriber(broker) for _ in range(5)]
    live.subscribe(everybody[3], wanted)
    live.remove_subscriber(everybody[3])
    live.remove_subscription(wanted[1])
    assert live.add_subscriber(broker) == everybody[3]
    assert live.held_by(everybody[3]).tolist() == []
    assert live.add_subscription(9) == wanted[1]
    assert_current(live)


def test_a_workload_comes_out_of_a_live_one_as_it_went_in() -> None:
    workload, start = make(SMALL, seed=3)
    snapshot = LiveWorkload.of(workload, start).snapshot()
    for got, given in (
        (snapshot.workload.indptr, workload.indptr),
        (snapshot.workload.idx, workload.idx),
        (snapshot.workload.rates, workload.rates),
        (snapshot.assignment, start),
    ):
        assert np.array_equal(got, given)
    assert snapshot.workload.capacity is None


def test_a_snapshot_is_dense_and_knows_the_numbers_of_the_live_workload() -> None:
    live = LiveWorkload()
    gone, near, far = live.add_broker(), live.add_broker(), live.add_broker(capacity=4)
    first, second = live.add_subscription(10), live.add_subscription(20)
    anna, bert = live.add_subscriber(near), live.add_subscriber(far)
    live.subscribe(bert, second)
    live.remove_broker(gone)
    live.remove_subscriber(anna)
    live.remove_subscription(first)
    snapshot = live.snapshot()
    assert snapshot.brokers.tolist() == [near, far]
    assert snapshot.subscribers.tolist() == [bert]
    assert snapshot.subscriptions.tolist() == [second]
    assert snapshot.assignment.tolist() == [1]
    assert snapshot.workload.idx.tolist() == [0]
    assert live.figures().loads.tolist() == [0.0, 10.0]


def test_a_snapshot_does_not_follow_the_live_workload() -> None:
    workload, start = make(SMALL, seed=3)
    live = LiveWorkload.of(workload, start)
    snapshot = live.snapshot()
    live.set_rates(0, 5)
    live.move(0, (int(start[0]) + 1) % 4)
    assert snapshot.workload.rates[0] == workload.rates[0]
    assert snapshot.assignment[0] == start[0]


def test_places_are_told_when_all_are_known() -> None:
    live = LiveWorkload()
    broker = live.add_broker(location=(1, 2))
    subscriber = live.add_subscriber(broker)
    assert live.snapshot().workload.subscriber_locations is None
    live.locate_subscriber(subscriber, (3, 4))
    workload = live.snapshot().workload
    assert workload.broker_locations is not None
    assert workload.subscriber_locations is not None
    assert workload.broker_locations.tolist() == [[1, 2]]
    assert workload.subscriber_locations.tolist() == [[3, 4]]


def test_newcomers_are_placed_by_what_the_live_workload_says() -> None:
    live = LiveWorkload()
    gone, near, far = live.add_broker(), live.add_broker(location=(0, 0)), live.add_broker(location=(9, 9))
    live.remove_broker(gone)
    wanted = live.add_subscription(10)
    live.subscribe(live.add_subscriber(near), wanted)
    live.subscribe(live.add_subscriber(far), live.add_subscription(8))
    assert LeastLoaded().place(live.view(), Newcomer()) == far
    assert LeastLoaded().place(live.view(closed=[far]), Newcomer()) == near
    assert Nearest().place(live.view(), Newcomer(location=(1, 2))) == near
    assert TwoChoices().place(live.view(), Newcomer(subscriptions=np.array([wanted], np.int32))) == near
    live.set_capacity(near, 4)
    assert live.view().loads.tolist()[1:] == [5.0, 16.0]


def moves(subscribers: list[int], sources: list[int], destinations: list[int]) -> Moves:
    def brokers(numbers: list[int]) -> Int32s:
        return np.array(numbers, np.int32)

    reasons = [Reason.OVERLOAD] * len(subscribers)
    return Moves(np.array(subscribers), brokers(sources), brokers(destinations), reasons)


def test_moves_are_carried_out_together() -> None:
    workload, start = make(SMALL, seed=3)
    live = LiveWorkload.of(workload, start)
    wanted = np.random.default_rng(3).integers(0, 4, 200).astype(np.int32)
    who = np.flatnonzero(wanted != start)
    live.apply(Moves(who, start[who], wanted[who], [Reason.SHUFFLE] * len(who)))
    assert [live.broker_of(i) for i in range(200)] == wanted.tolist()
    assert_current(live)


@pytest.mark.parametrize(
    ("overtaken", "says"),
    [
        (moves([0, 1], [0, 1], [1, 0]), "no longer on 1"),
        (moves([0, 9], [0, 0], [1, 1]), "there is no subscriber 9"),
        (moves([0, 1], [0, 0], [1, 9]), "there is no broker 9"),
        (moves([0, 0], [0, 0], [1, 1]), "moved twice"),
    ],
)
def test_moves_that_were_overtaken_by_events_are_refused_as_a_whole(overtaken: Moves, says: str) -> None:
    live = LiveWorkload()
    first, _ = live.add_broker(), live.add_broker()
    everybody = [live.add_subscriber(first) for _ in range(2)]
    with pytest.raises((InvalidError, NotFoundError), match=says):
        live.apply(overtaken)
    assert [live.broker_of(subscriber) for subscriber in everybody] == [first, first]


@pytest.fixture
def live() -> LiveWorkload:
    """Two brokers, two subscribers on the first, three BE subscriptions; subscriber 0 holds the first of them."""
    live = LiveWorkload()
    first, _ = live.add_broker(), live.add_broker()
    anna, _ = live.add_subscriber(first), live.add_subscriber(first)
    wanted, _, _ = (live.add_subscription(rate) for rate in (10, 20, 30))
    live.subscribe(anna, wanted)
    return live


def test_nonsense_is_refused_and_changes_nothing(live: LiveWorkload) -> None:
    for says, nonsense in (
        ("there is no broker 7", lambda: live.move(0, 7)),
        ("there is no broker -1", lambda: live.add_subscriber(-1)),
        ("there is no subscriber 5", lambda: live.remove_subscriber(5)),
        ("there is no BE subscription 3", lambda: live.subscribe(0, [1, 3])),
        ("holds BE subscription 0 already", lambda: live.subscribe(0, [1, 0])),
        ("given twice", lambda: live.subscribe(0, [1, 1])),
        ("does not hold BE subscription 1", lambda: live.unsubscribe(0, [0, 1])),
        ("give pairs", lambda: live.subscribe([0, 1], [1])),
        ("one for each", lambda: live.set_rates([0, 1], [5])),
        ("must not be negative", lambda: live.set_rates([0, 1], [5, -5])),
        ("whole numbers", lambda: live.set_rates(0, 0.5)),
        ("still has 1 holders", lambda: live.remove_subscription(0)),
        ("still has 2 subscribers", lambda: live.remove_broker(0)),
        ("must be a number above 0", lambda: live.set_capacity(0, 0.0)),
        ("must be a number above 0", lambda: live.add_broker(float("nan"))),
        ("there is no subscriber 5", lambda: live.suspend([0, 5])),
        ("is not a location", lambda: live.add_subscriber(0, (0.0, float("inf")))),
    ):
        with pytest.raises((InvalidError, NotFoundError), match=says):
            nonsense()
    assert live.brokers.tolist() == [0, 1]
    assert live.subscribers.tolist() == [0, 1]
    assert live.figures().loads.tolist() == [20.0, 0.0]
    assert_current(live)


def test_whoever_is_suspended_weighs_nothing_and_is_not_waited_for_by_placements(live: LiveWorkload) -> None:
    live.suspend([0, 1])
    assert live.figures().loads.tolist() == [0.0, 0.0]
    assert live.population.tolist() == [2, 0]
    assert live.view().idle.tolist() == [0, 0]
    with pytest.raises(InvalidError, match="resume it first"):
        live.subscribe(0, 1)
    live.resume(1)
    assert live.view().idle.tolist() == [1, 0]
    assert live.view().population.tolist() == [1, 0]


def test_a_live_workload_does_not_begin_with_nonsense() -> None:
    workload, start = make(SMALL, seed=3)
    start[5] = 9
    with pytest.raises(InvalidError, match="subscriber 5 is on broker 9"):
        LiveWorkload.of(workload, start)
