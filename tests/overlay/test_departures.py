"""Whoever does not go when it is sent to another edge keeps nobody else from going."""

from __future__ import annotations

import pytest

from tests.overlay.bench import FOUR, accepting, come, local, offloading, publish
from tocsin.overlay import events
from tocsin.overlay.departures import ArrivalCount, Departures
from tocsin.overlay.detection import Availability
from tocsin.overlay.dialogue import Move
from tocsin.overlay.edge import Edge
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.load import BrokerLoad, Metrics
from tocsin.overlay.messages import Control, SessionAccept, SessionDone, SessionMigrating, SessionRequest
from tocsin.overlay.server.status import describe_failures
from tocsin.simulate.overlay.brokers import Power
from tocsin.simulate.overlay.invariants import violations
from tocsin.simulate.overlay.system import OverlaySystem

LIMITS = OverlayLimits()
EVERYBODY = ["ann", "bob", "eve", "eve+1", "eve+2"]


def departures(sent: list[str], missing: list[str] | None, acceptor: str = "f") -> Departures:
    """After a session at 0 s, which those who go have left by 10."""
    some = Departures(LIMITS)
    some.settle(0.0, acceptor, sent, missing, 10.0)
    return some


def test_who_was_sent_away_and_is_here_afterwards_is_not_sent_there_again_for_a_while() -> None:
    some = departures(["ann", "bob"], ["bob"])
    assert some.leaving(9.0) == {"ann", "bob"}
    assert some.leaving(10.0) == frozenset()
    assert some.staying(20.0, "f", EVERYBODY) == {"ann", "bob"}
    assert some.staying(20.0, "g", EVERYBODY) == set()
    assert some.staying(10.0 + LIMITS.stayed_seconds, "f", EVERYBODY) == set()


def test_who_goes_to_neither_of_two_edges_is_sent_to_no_third() -> None:
    some = departures(["ann", "bob"], None)
    some.settle(100.0, "g", ["bob"], None, 110.0)
    assert some.staying(120.0, "i", EVERYBODY) == {"bob"}


def test_who_is_brought_back_by_a_session_may_be_sent_away_again() -> None:
    some = departures(["ann", "bob"], [])
    some.brought("ann")
    assert some.staying(20.0, "f", EVERYBODY) == {"bob"}


def test_a_bearer_of_whom_most_do_not_go_has_no_other_name_to_be_sent_by() -> None:
    some = departures(["ann", "bob", "eve", "eve+1"], ["eve", "eve+1"])
    assert some.staying(20.0, "f", ["eve+2", "ann+2", "cid"]) == {"eve+2"}
    one_of_many = departures(["eve", "eve+1"], ["eve+1"])
    assert one_of_many.staying(20.0, "f", ["eve+2", "cid"]) == set()


@pytest.mark.parametrize(("missing", "told"), [(0, False), (1, False), (2, True), (4, True)])
def test_an_acceptor_that_half_of_them_do_not_reach_is_named_until_others_do(missing: int, told: bool) -> None:
    some = departures(FOUR, FOUR[:missing])
    assert some.in_vain(20.0) == ([ArrivalCount("f", 4, missing)] if told else [])
    some.settle(100.0, "f", ["ann"], [], 110.0)
    assert some.in_vain(120.0) == []


def test_an_edge_says_to_its_operator_where_nobody_arrived_and_asks_others_first() -> None:
    bench, id = offloading()
    publish(bench, 50, 3.0)
    (migrating,) = bench.bodies(SessionMigrating)
    assert isinstance(migrating, SessionMigrating)
    count = len(migrating.subscribers)
    bench.hear("h", Control({"to": "e"}, "f", SessionDone(id, migrating.subscribers)))
    assert isinstance(bench.core, Edge)
    (problem,) = describe_failures(bench.core)
    assert f"{count} of the {count} subscribers that were last sent to f did not arrive" in problem
    assert "overlay.url" in problem
    # f has least, and g is asked before it.
    bench.wait(60.0)
    publish(bench, 200, 10.0)
    bench.tell(events.Tick())
    bench.links.clear()
    bench.hear("h", local("f", Metrics(0.0, 0.0, 0.001)))
    bench.hear("h", local("g", Metrics(0.05, 0.0, 0.005)))
    bench.wait(5.0)
    asked = [each.message for each in bench.links if isinstance(each.message, Control)]
    assert next(each.attributes for each in asked if isinstance(each.body, SessionRequest)) == {"to": "g"}


def test_an_edge_does_not_send_those_again_who_are_still_there() -> None:
    bench, id = offloading()
    publish(bench, 50, 3.0)
    gone = [each.client for each in bench.clients if isinstance(each.message, Move)]
    bench.hear("h", Control({"to": "e"}, "f", SessionDone(id, ["s0"])))
    for _ in range(20):
        bench.hear("h", local("f"))
        publish(bench, 50, 5.0)
        for request in bench.bodies(SessionRequest):
            assert isinstance(request, SessionRequest)
            accept = SessionAccept(request.id, BrokerLoad(0.0, 0.001, 0.0, 1e6, 0), [])
            bench.hear("h", Control({"to": "e"}, "f", accept))
    again = [each.client for each in bench.clients if isinstance(each.message, Move)][len(gone) :]
    assert not set(again) & set(gone)


def test_an_acceptor_to_which_nobody_comes_does_not_wait_for_as_long_as_many_would_take() -> None:
    bench = accepting()
    many = [f"m{number}" for number in range(2000)]
    bench.hear("h", Control({"to": "e"}, "f", SessionMigrating("x", many)))
    bench.wait(LIMITS.arriving_seconds - 0.1)
    assert not bench.bodies(SessionDone)
    bench.wait(0.2)
    assert bench.bodies(SessionDone) == [SessionDone("x", sorted(many))]


def test_whoever_trickles_in_makes_a_session_no_longer_than_by_its_own_share() -> None:
    bench = accepting()
    bench.hear("h", Control({"to": "e"}, "f", SessionMigrating("x", [f"m{number}" for number in range(100, 2100)])))
    for number in range(100, 200):
        bench.wait(4.0)
        come(bench, number)
    (done,) = bench.bodies(SessionDone)
    assert isinstance(done, SessionDone)
    assert len(done.missing) == 2000 - 2


def test_an_acceptor_waits_as_long_as_they_come_one_after_the_other() -> None:
    bench = accepting()
    names = [f"m{number}" for number in range(100, 200)]
    bench.hear("h", Control({"to": "e"}, "f", SessionMigrating("x", names)))
    for number in range(100, 200):
        assert not bench.bodies(SessionDone)
        bench.wait(0.45)
        come(bench, number)
    assert bench.bodies(SessionDone) == [SessionDone("x")]


WEAK, STRONG = Power(0.002, 20_000.0), Power(0.001, 40_000.0)


def crowd(refusing: range, count: int = 60, limits: OverlayLimits = LIMITS) -> OverlaySystem:
    """Two edges, and all at the weaker one; some of them, by their number, do not go. The last have least traffic."""
    powers = {"a": WEAK, "b": STRONG}
    system = OverlaySystem({"h": None}, {"a": "h", "b": "h"}, limits=limits, powers=powers)
    system.start_publisher("p", "h")
    for number in range(count):
        system.subscribe(f"s{number}", f"n >= {number * 10 / count}", ["a"], refuses=number in refusing)

    def publish(number: int) -> None:
        system.publish("p", n=number % 10)
        system.clock.after(0.2, publish, number + 1)

    publish(0)
    return system


def advance_to_migration(system: OverlaySystem, edge: str) -> None:
    """Until an edge sends subscribers away."""
    until = system.clock.now + 100.0
    while system.edges[edge].core.mediation.stage != "migrating":
        system.advance(0.05)
        assert system.clock.now < until


@pytest.mark.parametrize("refusing", [range(40, 60), range(25, 60)])
def test_edges_come_to_balance_although_those_do_not_go_who_would_be_chosen_first(refusing: range) -> None:
    system, busy = crowd(refusing), 0
    for _ in range(300):
        system.advance(1.0)
        busy += system.edges["a"].core.surroundings.busy
    loads = [edge.core.surroundings.load() for edge in system.edges.values()]
    inputs = [load.input_ratio for load in loads if load]
    assert max(inputs) - min(inputs) < 0.1
    assert busy < 90
    assert all(len(system.albums[f"s{number}"].refused) <= 1 for number in refusing)
    assert not [text for text in violations(system) if "was sent by" in text]


def test_an_offloader_does_not_wait_for_an_acceptor_that_is_silent() -> None:
    system = crowd(range(0), limits=OverlayLimits(migration_seconds=60.0))
    mediation = system.edges["a"].core.mediation
    advance_to_migration(system, "a")
    system.crash("b")
    system.advance(LIMITS.silent_seconds)
    assert mediation.stage == ""
    assert system.edges["a"].core.surroundings.state() is Availability.STABILIZING


def test_an_offloader_waits_no_longer_than_an_acceptor_may() -> None:
    limits = OverlayLimits(migrating=4, silent_seconds=10_000.0)
    system = crowd(range(0), limits=limits)
    edge = system.edges["a"]
    advance_to_migration(system, "a")
    system.crash("b")
    system.advance(4 * limits.migration_seconds + 2 * limits.grace_seconds)
    assert len(edge.core.subscriptions) > 4
    assert edge.core.mediation.stage == ""
