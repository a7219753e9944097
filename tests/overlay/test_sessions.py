"""Load messages, and sessions between edges of a cluster."""

from __future__ import annotations

import pytest

from tests.overlay.bench import FOUR, IDLE_EDGE, accepting, come, edge, local, offloading, publish
from tocsin.overlay import events
from tocsin.overlay.actions import SendClient
from tocsin.overlay.detection import Availability
from tocsin.overlay.dialogue import Began, Move, Settle, Subscribe
from tocsin.overlay.edge import Edge
from tocsin.overlay.limits import FORGET_SECONDS, OverlayLimits
from tocsin.overlay.load import BrokerLoad, Metrics
from tocsin.overlay.messages import (
    Control,
    Found,
    LocalLoad,
    SessionAccept,
    SessionDone,
    SessionEnd,
    SessionMigrating,
    SessionReject,
    SessionRequest,
)


def test_an_edge_says_its_load_to_its_cluster_with_priority() -> None:
    bench = edge()
    publish(bench, 100, 10.0)
    load = bench.bodies(LocalLoad)[-1]
    assert isinstance(load, LocalLoad)
    assert (load.broker, load.cluster, load.state) == ("e", "h", "OK")
    assert load.metrics.input == pytest.approx(10 * 0.03, rel=0.2)
    assert load.match_rate == pytest.approx(1 / 0.03)
    assert all(action.urgent for action in bench.links if isinstance(action.message, Control))


def test_who_has_not_been_heard_of_for_long_is_forgotten() -> None:
    bench, load = edge(), LocalLoad("f-1", "h", IDLE_EDGE, "OK", [], url="ws://f-1")
    bench.hear("h", Control({"load": "h"}, "f-1", load))
    publish(bench, 10, 1.0)
    assert isinstance(bench.core, Edge)
    bench.wait(60.0)
    assert bench.core.surroundings.address("f-1") == "ws://f-1"
    bench.wait(2 * FORGET_SECONDS)
    assert bench.core.surroundings.address("f-1") == "f-1"


def test_an_edge_that_is_loaded_asks_the_least_loaded_first_and_then_the_next() -> None:
    bench = edge()
    publish(bench, 200, 10.0)
    bench.hear("h", local("f", Metrics(0.3, 0.0, 0.02)))
    bench.hear("h", local("g"))
    bench.wait(5.0)
    (first,) = bench.bodies(SessionRequest)
    assert isinstance(first, SessionRequest)
    bench.hear("h", Control({"to": "e"}, "g", SessionReject(first.id, "BUSY")))
    second = bench.bodies(SessionRequest)[-1]
    assert second != first
    assert [action.message.attributes for action in bench.links if isinstance(action.message, Control)][-1] == {
        "to": "f"
    }


def test_an_edge_without_an_answer_is_available_again() -> None:
    bench = edge()
    publish(bench, 200, 10.0)
    bench.hear("h", local("f"))
    bench.wait(5.0)
    assert isinstance(bench.core, Edge)
    assert bench.core.surroundings.state() is Availability.BUSY
    bench.wait(5.5)
    assert len(bench.bodies(SessionRequest)) >= 1
    bench.wait(30.0)
    assert bench.core.surroundings.state() is Availability.OK


def test_who_is_to_go_is_told_when_enough_was_sampled_and_may_leave_when_all_have_come() -> None:
    bench, id = offloading()
    publish(bench, 49, 3.0)
    assert not [each for each in bench.clients if isinstance(each.message, Move)]
    publish(bench, 1, 0.1)
    moves = [each for each in bench.clients if isinstance(each.message, Move)]
    assert moves
    assert {each.message for each in moves} == {Move("f", id, len(moves))}
    bench.hear("h", Control({"to": "e"}, "f", SessionDone(id)))
    settled = [each for each in bench.clients if isinstance(each.message, Settle)]
    assert [each.client for each in settled] == [each.client for each in moves]
    assert {each.message for each in settled} == {Settle(id, 0.03)}
    assert isinstance(bench.core, Edge)
    assert bench.core.surroundings.state() is Availability.STABILIZING


def test_who_is_to_go_is_told_where_the_other_edge_is_reached() -> None:
    bench, _ = offloading()
    load = LocalLoad("f", "h", IDLE_EDGE, "OK", [], "ws://f.example.org")
    bench.hear("h", Control({"load": "h"}, "f", load))
    publish(bench, 50, 3.0)
    assert {each.message.edge for each in bench.clients if isinstance(each.message, Move)} == {"ws://f.example.org"}


def test_an_offloader_that_hears_nothing_more_settles_when_the_time_is_up() -> None:
    bench, _ = offloading()
    publish(bench, 50, 3.0)
    moves = [each for each in bench.clients if isinstance(each.message, Move)]
    bench.wait(len(moves) * 0.5 + 10.0)
    assert len([each for each in bench.clients if isinstance(each.message, Settle)]) == len(moves)


def test_sampling_ends_after_its_time_and_a_session_without_a_choice_ends() -> None:
    bench, id = offloading()
    bench.wait(29.0)
    assert not bench.bodies(SessionEnd)
    for session in range(4):
        bench.tell(events.ClientLost(session))
    bench.wait(1.5)
    assert bench.bodies(SessionEnd) == [SessionEnd(id, vain=True)]


def test_who_leaves_a_crowded_edge_waits_for_its_queues_only_for_a_while() -> None:
    bench, id = offloading()
    bench.tell(events.Gauged(0.03, 1_000_000.0, input_seconds=300.0))
    publish(bench, 50, 3.0)
    bench.hear("h", Control({"to": "e"}, "f", SessionDone(id)))
    settled = {each.message for each in bench.clients if isinstance(each.message, Settle)}
    assert settled == {Settle(id, OverlayLimits().leaving_seconds)}


def test_who_is_about_to_leave_is_not_sent_away_again() -> None:
    bench, id = offloading()
    publish(bench, 50, 3.0)
    going = [each.client for each in bench.clients if isinstance(each.message, Move)]
    bench.hear("h", Control({"to": "e"}, "f", SessionDone(id)))
    # Those who have been told to settle are still here when an overload brings the next session.
    bench.tell(events.Gauged(0.03, 1_000_000.0, cpu=1.0))
    bench.hear("h", local("g"))
    bench.wait(5.0)
    request = bench.bodies(SessionRequest)[-1]
    assert isinstance(request, SessionRequest)
    assert request.id != id
    bench.hear("h", Control({"to": "e"}, "g", SessionAccept(request.id, BrokerLoad(0.0, 0.001, 0.0, 1e6, 0), [])))
    publish(bench, 50, 0.5)
    again = [each.client for each in bench.clients if isinstance(each.message, Move) and each.message.edge == "g"]
    assert not set(again) & set(going)


def test_an_edge_asks_in_vain_only_once_and_both_count_as_balanced() -> None:
    bench = edge(1)
    bench.tell(events.ClientLost(0))
    for _ in range(20):
        bench.hear("h", local("f"))
        bench.wait(5.0)
        for request in bench.bodies(SessionRequest):
            assert isinstance(request, SessionRequest)
            accept = SessionAccept(request.id, BrokerLoad(0.0, 0.001, 0.0, 1e6, 0), [])
            bench.hear("h", Control({"to": "e"}, "f", accept))
    assert len(bench.bodies(SessionRequest)) == 1
    assert SessionEnd("e.1-1", vain=True) in bench.bodies(SessionEnd)
    said = bench.bodies(LocalLoad)[-1]
    assert isinstance(said, LocalLoad)
    assert said.balanced == ["f"]


def test_an_edge_to_which_nobody_comes_counts_as_balanced_with_who_has_more() -> None:
    bench = accepting()
    bench.hear("h", local("f", Metrics(0.0, 0.3, 0.03)))
    bench.hear("h", Control({"to": "e"}, "f", SessionEnd("x", vain=True)))
    bench.wait(6.0)
    said = bench.bodies(LocalLoad)[-1]
    assert isinstance(said, LocalLoad)
    assert said.balanced == ["f"]


def test_an_answer_that_comes_too_late_is_answered_with_an_end() -> None:
    bench = edge()
    bench.hear("h", Control({"to": "e"}, "f", SessionAccept("old", BrokerLoad(0.0, 0.001, 0.0, 1e6, 0), [])))
    assert bench.bodies(SessionEnd) == [SessionEnd("old")]


def test_an_acceptor_says_its_load_and_its_covering_set_and_takes_no_second_session() -> None:
    bench = accepting()
    (accept,) = bench.bodies(SessionAccept)
    assert isinstance(accept, SessionAccept)
    assert (accept.load.subscriptions, accept.covering) == (1, ["n >= 0"])
    bench.hear("h", Control({"to": "e"}, "g", SessionRequest("y")))
    assert bench.bodies(SessionReject) == [SessionReject("y", "BUSY")]


def test_an_acceptor_says_done_when_everybody_is_served() -> None:
    bench = accepting()
    bench.hear("h", Control({"to": "e"}, "f", SessionMigrating("x", ["m7", "m8"])))
    for number in (7, 8):
        bench.tell(events.ClientSaid(number, Subscribe(f"m{number}", "n > 5", {}, "x", 2)))
        held = bench.core.subscriptions.get(f"m{number}") if isinstance(bench.core, Edge) else None
        assert held
        assert not bench.bodies(SessionDone)
        bench.hear("h", Control({"to": "e"}, "h", Found(held.fetch, "h", "h.1", {}, 1, 0, 0, [])))
        assert bench.clients[-1] == SendClient(number, Began("h", 0, "h.1"))
    assert bench.bodies(SessionDone) == [SessionDone("x")]


def test_an_acceptor_says_done_when_the_time_is_up() -> None:
    bench = accepting()
    bench.tell(events.ClientSaid(7, Subscribe("m7", "n > 5", {}, "x", 4)))
    bench.hear("h", Control({"to": "e"}, "f", SessionMigrating("x", FOUR)))
    bench.wait(1.0)
    bench.hear("h", Control({"to": "e"}, "f", SessionMigrating("x", FOUR)))
    bench.wait(0.9)
    assert not bench.bodies(SessionDone)
    bench.wait(0.2)
    assert bench.bodies(SessionDone) == [SessionDone("x", sorted(FOUR))]


def test_subscribers_may_come_before_it_is_said_who_does() -> None:
    bench = accepting()
    come(bench, 7)
    come(bench, 8)
    assert not bench.bodies(SessionDone)
    bench.hear("h", Control({"to": "e"}, "f", SessionMigrating("x", ["m7", "m8"])))
    assert bench.bodies(SessionDone) == [SessionDone("x")]


def test_whoever_knows_the_session_but_was_not_sent_does_not_count_as_arrived() -> None:
    bench = accepting()
    # Before it is said who migrates, and after.
    come(bench, 1)
    come(bench, 2)
    bench.hear("h", Control({"to": "e"}, "f", SessionMigrating("x", ["m7", "m8"])))
    come(bench, 3)
    come(bench, 7)
    # The same again, on another connection.
    come(bench, 7)
    assert not bench.bodies(SessionDone)
    come(bench, 8)
    assert bench.bodies(SessionDone) == [SessionDone("x")]


def test_only_the_two_brokers_of_a_session_say_what_becomes_of_it() -> None:
    bench = accepting()
    bench.hear("h", Control({"to": "e"}, "g", SessionEnd("x")))
    assert isinstance(bench.core, Edge)
    assert bench.core.mediation.stage == "accepting"
    bench, id = offloading()
    publish(bench, 50, 3.0)
    bench.hear("h", Control({"to": "e"}, "g", SessionDone(id)))
    assert isinstance(bench.core, Edge)
    assert bench.core.mediation.stage == "migrating"
    bench.hear("h", Control({"to": "e"}, "f", SessionDone(id)))
    assert bench.core.mediation.stage == ""


def test_only_the_offloader_says_who_migrates_and_a_subscriber_makes_no_session_longer() -> None:
    bench = accepting()
    bench.tell(events.ClientSaid(7, Subscribe("liar", "n > 5", {}, "x", 2000)))
    bench.hear("h", Control({"to": "e"}, "g", SessionMigrating("x", [f"m{number}" for number in range(2000)])))
    bench.wait(41.0)
    assert isinstance(bench.core, Edge)
    assert bench.core.surroundings.state() is not Availability.BUSY


def test_the_acceptor_is_told_who_is_sent() -> None:
    bench, id = offloading()
    publish(bench, 50, 3.0)
    moves = [each for each in bench.clients if isinstance(each.message, Move)]
    assert isinstance(bench.core, Edge)
    names = {held.client: held.subscriber for held in bench.core.subscriptions.all}
    assert bench.bodies(SessionMigrating) == [SessionMigrating(id, [names[each.client] for each in moves])]


def test_an_answer_that_comes_twice_changes_nothing() -> None:
    bench, id = offloading()
    accept = Control({"to": "e"}, "f", SessionAccept(id, BrokerLoad(0.0, 0.001, 0.0, 1e6, 0), []))
    publish(bench, 25, 1.5)
    bench.hear("h", accept)
    publish(bench, 25, 1.5)
    assert [each for each in bench.clients if isinstance(each.message, Move)]
    bench.hear("h", accept)
    assert bench.bodies(SessionEnd) == []
    bench.hear("h", Control({"to": "e"}, "f", SessionDone(id)))
    bench.hear("h", accept)
    assert bench.bodies(SessionEnd) == [SessionEnd(id)]


def test_a_request_that_comes_twice_is_answered_once_also_when_its_session_is_over() -> None:
    bench = accepting()
    request = Control({"to": "e"}, "f", SessionRequest("x"))
    bench.hear("h", request)
    bench.hear("h", Control({"to": "e"}, "f", SessionEnd("x")))
    bench.wait(60.0)
    bench.hear("h", request)
    assert len(bench.bodies(SessionAccept)) == 1
    assert bench.bodies(SessionReject) == []


def test_an_acceptor_whose_filters_cannot_be_read_is_refused_and_the_next_one_asked() -> None:
    bench = edge()
    for name in ("f", "g"):
        bench.hear("h", local(name))
    publish(bench, 200, 10.0)
    (request,) = bench.bodies(SessionRequest)
    assert isinstance(request, SessionRequest)
    (asked,) = [each.message for each in bench.links if getattr(each.message, "body", None) == request]
    assert isinstance(asked, Control)
    acceptor = asked.attributes["to"]
    core = bench.core
    assert isinstance(core, Edge)
    load = core.surroundings.load()
    assert load
    bench.hear("h", Control({"to": "e"}, acceptor, SessionAccept(request.id, load, ["x > 1", "x ≈ 2"])))
    assert bench.bodies(SessionEnd) == [SessionEnd(request.id)]
    again = bench.bodies(SessionRequest)[-1]
    assert again != request
    (other,) = [each.message for each in bench.links if getattr(each.message, "body", None) == again]
    assert isinstance(other, Control)
    assert {acceptor, other.attributes["to"]} == {"f", "g"}


def test_an_edge_says_its_ratios_of_cpu_and_memory() -> None:
    bench = edge()
    bench.tell(events.Gauged(0.03, 1_000_000.0, cpu=0.4, memory=30.0, memory_bytes=100.0))
    bench.wait(5.0)
    said = bench.bodies(LocalLoad)[-1]
    assert isinstance(said, LocalLoad)
    assert (said.cpu, said.memory) == (0.4, 0.3)


def test_a_subscriber_that_lies_about_how_many_migrate_keeps_nobody_busy_for_ever() -> None:
    bench = edge(1)
    assert isinstance(bench.core, Edge)
    bench.hear("h", Control({"to": "e"}, "f", SessionRequest("s")))
    assert bench.core.surroundings.state() is Availability.BUSY
    bench.tell(events.ClientSaid(7, Subscribe("liar", "n > 1", session="s", migrating=10**15)))
    bench.wait(3600.0)
    assert bench.core.surroundings.state() is not Availability.BUSY
