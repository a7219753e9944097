"""Those who are behind: they take turns, get what they missed in parts, and are told what is gone."""

from __future__ import annotations

import pytest

from tests.broker.world import Bench, notes, sent, told
from tocsin.broker import actions, events
from tocsin.broker.limits import BrokerLimits
from tocsin.model import control, coordination, subscriber
from tocsin.model.subscriber import Gap, Held

LITTLE = BrokerLimits(cache_bytes=0, pull_executions=5, pull_backends=1)


def executed(bench: Bench, times: int, *subscriptions: Held) -> None:
    """A channel has run so often while nobody here was connected."""
    for held in subscriptions:
        bench.cluster.attached[held.subscription].add("a")
    for _ in range(times):
        bench.cluster.execute("c", lambda _: True)


def gaps(did: list[actions.Action], session: int) -> list[tuple[int, int, int]]:
    found = [message for message in sent(did, session) if isinstance(message, Gap)]
    return [(gap.subscription, gap.first, gap.last) for gap in found]


@pytest.mark.parametrize("span", [1, 5])
def test_somebody_who_logs_in_with_cursor_0_again_and_again_starves_nobody(span: int) -> None:
    bench = Bench(BrokerLimits(cache_bytes=0, pull_executions=span, pull_backends=1))
    bench.connect()
    greedy, honest = bench.held(1), bench.held(2, cursor=90)
    executed(bench, 100, greedy, honest)
    bench.serve("eve", 1, greedy)
    bench.serve("ann", 2, honest)
    bench.do(events.Closed(1))
    bench.do(events.Closed(2))

    had: list[tuple[int, int]] = []
    session = 10
    bench.do(events.Opened(2000))
    waiting = [*bench.say(2000, subscriber.Login("token-ann", cursors={honest.subscription: 90}))]
    for _ in range(100):
        # Before each answer she is there once more, further behind than anybody.
        session += 1
        bench.do(events.Opened(session))
        waiting += bench.say(session, subscriber.Login("token-eve", cursors={greedy.subscription: 0}))
        asked = [action for action in waiting if isinstance(action, actions.ToData)]
        waiting = []
        for action in asked[:1]:
            did = bench.tell(bench.cluster.answer("a", action.message))
            had += notes(did, 2000)
            waiting += did
        waiting += asked[1:]
    assert [execution for _, execution in had] == list(range(91, 101))


def test_one_with_many_subscriptions_behind_has_one_turn_like_everybody() -> None:
    bench = Bench(BrokerLimits(cache_bytes=0, pull_executions=2, pull_backends=1))
    bench.connect()
    many, one = [bench.held(value) for value in range(1, 21)], bench.held(50)
    executed(bench, 40, *many, one)
    bench.serve("eve", 1, *many)
    bench.serve("ann", 2, one)
    bench.do(events.Closed(1))
    bench.do(events.Closed(2))
    bench.do(events.Opened(3))
    waiting = bench.say(3, subscriber.Login("token-eve", cursors={held.subscription: 0 for held in many}))
    bench.do(events.Opened(4))
    waiting += bench.say(4, subscriber.Login("token-ann", cursors={one.subscription: 0}))
    pulls = 0
    had: list[tuple[int, int]] = []
    while len(had) < 40:
        [action] = [action for action in waiting if isinstance(action, actions.ToData)]
        pulls += 1
        waiting = bench.tell(bench.cluster.answer("a", action.message))
        had += notes(waiting, 4)
    assert pulls <= 2 * 40 / 2 + 2


@pytest.mark.parametrize("part", [None, 1, 3])
def test_what_was_missed_comes_in_parts_without_a_hole(part: int | None) -> None:
    bench = Bench(LITTLE)
    bench.connect()
    bench.cluster.part = part
    held = bench.held(1)
    executed(bench, 23, held)
    bench.serve("ann", 1, held)
    bench.do(events.Closed(1))
    assert notes(bench.login("ann", 2, {1: 4}), 2) == [(1, execution) for execution in range(5, 24)]


def test_a_connection_that_was_cut_short_in_one_part_is_not_given_the_next() -> None:
    bench = Bench(BrokerLimits(cache_bytes=0, waiting_bytes=200))
    bench.connect()
    held = bench.held(1)
    executed(bench, 12, held)
    bench.tell(coordination.Prepare("ann", 1, [held]))
    bench.answer_data()
    bench.do(events.Opened(1))
    did = bench.say(1, subscriber.Login("token-ann")) + bench.do(events.Flushed(1, 0))
    [pull] = told(did, control.Pull)
    bench.cluster.part = 4
    first, second, third = bench.cluster.answers("a", pull)
    had = notes(bench.tell(first), 1)
    bench.do(events.Flushed(1, 0))
    had += notes(bench.tell(second), 1)
    bench.do(events.Flushed(1, 0))
    did = bench.tell(third)
    had += notes(did, 1)
    while told(did, control.Pull):
        bench.do(events.Flushed(1, 0))
        did = bench.answer_data(did)
        had += notes(did, 1)
        did += bench.do(events.Flushed(1, 0))
    executions = [execution for _, execution in had]
    assert executions == sorted(set(executions))
    assert executions == list(range(1, len(executions) + 1))


def test_results_expired_while_somebody_was_away_are_told_as_a_gap() -> None:
    bench = Bench(LITTLE)
    bench.connect()
    held = bench.held(1)
    executed(bench, 100, held)
    bench.cluster.kept = 10
    bench.serve("ann", 1, held)
    bench.do(events.Closed(1))
    did = bench.login("ann", 2, {1: 4})
    assert gaps(did, 2) == [(1, 5, 90)]
    assert notes(did, 2) == [(1, execution) for execution in range(91, 101)]
    assert [type(message).__name__ for message in sent(did, 2)[:3]] == ["Welcome", "Gap", "Notes"]


def test_nobody_is_told_of_a_gap_in_which_nothing_was_found_for_them() -> None:
    bench = Bench(LITTLE)
    bench.connect()
    rare, often = bench.held(1), bench.held(2)
    executed(bench, 3, rare, often)
    for _ in range(97):
        bench.cluster.execute("c", lambda be: be == often.subscription)
    bench.cluster.kept = 10
    bench.serve("ann", 1, rare)
    bench.do(events.Closed(1))
    assert gaps(bench.login("ann", 2, {1: 3}), 2) == []
    assert gaps(bench.login("ann", 3, {1: 2}), 3) == [(1, 3, 3)]


@pytest.mark.slow
def test_what_is_gone_is_not_walked_through() -> None:
    bench = Bench(LITTLE)
    bench.connect()
    held = bench.held(1)
    executed(bench, 10_000, held)
    bench.cluster.kept = 10
    bench.serve("ann", 1, held)
    bench.do(events.Closed(1))
    bench.do(events.Opened(2))
    did = bench.say(2, subscriber.Login("token-ann", cursors={1: 0}))
    pulls = 0
    while asked := told(did, control.Pull):
        pulls += len(asked)
        did = [action for pull in asked for action in bench.tell(bench.cluster.answer("a", pull))]
    assert pulls <= 4


def test_those_who_are_current_are_told_of_a_gap_when_the_data_cluster_was_out_of_reach_for_too_long() -> None:
    bench = Bench(BrokerLimits())
    bench.connect()
    held = bench.held(1)
    bench.serve("ann", 1, held)
    assert notes(bench.execute(), 1) == [(1, 1)]
    bench.do(events.Lost("data"))
    for _ in range(50):
        bench.cluster.execute("c", lambda _: True)
    bench.cluster.kept = 10
    did = bench.answer_data(bench.do(events.Connected("data")))
    assert gaps(did, 1) == [(1, 2, 41)]
    assert notes(did, 1) == [(1, execution) for execution in range(42, 52)]
    bench.do(events.Closed(1))
    did = bench.login("ann", 2, {1: 1})
    assert gaps(did, 2) == [(1, 2, 41)], "nor does the cache hide it"


def test_a_live_subscription_has_no_gaps() -> None:
    bench = Bench(LITTLE)
    bench.connect()
    held = bench.held(1, live=True)
    executed(bench, 100, held)
    bench.cluster.kept = 10
    bench.serve("ann", 1, held)
    assert gaps(bench.did, 1) == []


def test_with_very_many_lines_a_pull_names_none_and_means_all() -> None:
    bench = Bench(BrokerLimits(pull_ids=1))
    bench.connect()
    subscriptions = [bench.held(1), bench.held(2)]
    bench.serve("ann", 1, *subscriptions)
    for notice in bench.cluster.execute("c", lambda _: True).values():
        [pull] = told(bench.tell(notice), control.Pull)
        assert pull.bes is None
        assert notes(bench.answer_data(), 1) == [(1, 1), (2, 1)]
