"""Load messages, and sessions between edges and between clusters, on the virtual clock."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tocsin.overlay import events
from tocsin.overlay.actions import SendClient, SendLink
from tocsin.overlay.detection import Availability
from tocsin.overlay.dialogue import Began, Introduce, Known, Move, Publish, Refused, Settle, Stored, Subscribe
from tocsin.overlay.edge import Edge
from tocsin.overlay.head import Head
from tocsin.overlay.limits import FORGET_SECONDS, OverlayLimits
from tocsin.overlay.load import BrokerLoad, Metrics
from tocsin.overlay.messages import (
    HEADS,
    ClusterAccept,
    ClusterAlive,
    ClusterLoad,
    Control,
    Found,
    LocalLoad,
    Routed,
    SessionAccept,
    SessionDone,
    SessionEnd,
    SessionMigrating,
    SessionReject,
    SessionRequest,
    Sync,
)
from tocsin.overlay.tuning import Tuning
from tocsin.simulate.overlay.brokers import Power
from tocsin.simulate.overlay.invariants import violations
from tocsin.simulate.overlay.system import POWERFUL, OverlaySystem

BUSY_EDGE = Metrics(0.6, 0.6, 0.06)
IDLE_EDGE = Metrics(0.1, 0.1, 0.01)
FOUR = ["m7", "m8", "m9", "m10"]


def local(
    broker: str,
    metrics: Metrics = IDLE_EDGE,
    state: str = "OK",
    cluster: str = "h",
    cpu: float = 0.0,
    memory: float = 0.0,
    balanced: Sequence[str] = (),
) -> Control:
    load = LocalLoad(broker, cluster, metrics, state, list(balanced), cpu=cpu, memory=memory)
    return Control({"load": cluster}, broker, load)


class Bench:
    """A core by itself, with what it sends to brokers and to clients."""

    def __init__(self, core: Head | Edge) -> None:
        self.core, self.now, self.published = core, 0.0, 0
        self.links: list[SendLink] = []
        self.clients: list[SendClient] = []

    def tell(self, event: events.Event) -> None:
        for action in self.core.handle(self.now, event):
            if isinstance(action, SendLink):
                self.links.append(action)
            elif isinstance(action, SendClient):
                self.clients.append(action)

    def hear(self, link: str, message: Control | Sync | ClusterLoad | Routed) -> None:
        self.tell(events.LinkSaid(link, message))

    def wait(self, seconds: float) -> None:
        """Lets time pass, in steps in which the core is woken."""
        until = self.now + seconds
        while (wake := self.core.wake()) is not None and wake <= until:
            self.now = max(self.now, wake)
            self.tell(events.Tick())
        self.now = until

    def bodies(self, kind: type) -> list[object]:
        sent = [action.message for action in self.links]
        return [each.body for each in sent if isinstance(each, Control) and isinstance(each.body, kind)]


def edge(subscribers: int = 4) -> Bench:
    """An edge e of the cluster h, loaded by its subscribers; f is another edge, in its control interests."""
    bench = Bench(Edge("e", "h", "e.1"))
    bench.tell(events.LinkOpened("h", is_head=True))
    bench.hear("h", Sync([], [f"to = '{HEADS}'", "load = 'h'", "to = 'f'", "to = 'g'"]))
    for number in range(subscribers):
        bench.tell(events.ClientSaid(number, Subscribe(f"s{number}", f"n >= {number}")))
    fetch = bench.links[-1].message
    assert isinstance(fetch, Control)
    for held in bench.core.subscriptions.all if isinstance(bench.core, Edge) else []:
        bench.hear("h", Control({"to": "e"}, "h", Found(held.fetch, "h", "h.1", {}, 1, 0, 0, [])))
    bench.tell(events.Gauged(0.03, 1_000_000.0))
    return bench


def publish(bench: Bench, count: int, seconds: float) -> None:
    """Publications for everybody, evenly."""
    for _ in range(count):
        bench.published += 1
        bench.now += seconds / count
        bench.hear("h", Routed("h", bench.published, "p", bench.published, {"n": 9.0}))


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


def offloading() -> tuple[Bench, str]:
    """An edge whose request f has accepted."""
    bench = edge()
    publish(bench, 200, 10.0)
    bench.hear("h", local("f"))
    bench.wait(5.0)
    request = bench.bodies(SessionRequest)[-1]
    assert isinstance(request, SessionRequest)
    accept = SessionAccept(request.id, BrokerLoad(0.0, 0.001, 0.0, 1e6, 0), [])
    bench.hear("h", Control({"to": "e"}, "f", accept))
    return bench, request.id


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


def accepting() -> Bench:
    """An edge that has accepted a request of f."""
    bench = edge(1)
    bench.hear("h", Control({"to": "e"}, "f", SessionRequest("x")))
    return bench


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


def come(bench: Bench, number: int) -> None:
    """A subscriber that migrates comes, and is served."""
    bench.tell(events.ClientSaid(number, Subscribe(f"m{number}", "n > 5", {}, "x", 2)))
    held = bench.core.subscriptions.get(f"m{number}") if isinstance(bench.core, Edge) else None
    assert held
    bench.hear("h", Control({"to": "e"}, "h", Found(held.fetch, "h", "h.1", {}, 1, 0, 0, [])))


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


def test_an_answer_of_another_cluster_that_comes_twice_changes_nothing() -> None:
    bench = head(["e"], ["h2"])
    bench.hear("e", local("e", BUSY_EDGE))
    bench.hear("h2", ClusterLoad("h2", IDLE_EDGE, "OK", 1))
    bench.wait(5.0)
    (request,) = bench.bodies(SessionRequest)
    assert isinstance(request, SessionRequest)
    for _ in range(2):
        bench.hear("h2", Control({"to": "h"}, "h2", ClusterAccept(request.id)))
    assert bench.bodies(SessionEnd) == []
    bench.hear("h2", Control({"to": "h"}, "h2", ClusterAccept("older")))
    assert bench.bodies(SessionEnd) == [SessionEnd("older")]


def test_what_another_head_says_of_a_session_that_is_not_its_own_changes_nothing() -> None:
    bench = head(["e"], ["h2", "h3"])
    core = bench.core
    assert isinstance(core, Head)
    bench.hear("e", local("e", BUSY_EDGE))
    bench.hear("h2", ClusterLoad("h2", IDLE_EDGE, "OK", 1))
    bench.wait(5.0)
    (request,) = bench.bodies(SessionRequest)
    assert isinstance(request, SessionRequest)
    for body in (ClusterAccept(request.id), SessionReject(request.id, "BUSY"), SessionEnd(request.id)):
        bench.hear("h3", Control({"to": "h"}, "h3", body))
    assert (core.alliance.other, core.federation.busy) == (None, True)
    bench.hear("h2", Control({"to": "h"}, "h2", ClusterAccept(request.id)))
    assert core.alliance.other == "h2"
    bench.hear("h3", Control({"to": "h"}, "h3", SessionEnd(request.id)))
    bench.hear("h3", Control({"to": "h"}, "h3", ClusterAlive(request.id)))
    assert core.alliance.other == "h2"
    bench.hear("h2", Control({"to": "h"}, "h2", SessionEnd(request.id)))
    assert core.alliance.other is None


def test_who_is_no_cluster_is_not_in_a_session_with_one() -> None:
    bench = head(["e"], ["h2"])
    bench.hear("e", local("e"))
    bench.hear("e", Control({"to": "h"}, "e", SessionRequest("x")))
    bench.hear("h2", Control({"to": "h"}, "far", SessionRequest("y")))
    assert bench.bodies(ClusterAccept) == []


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


def test_a_request_of_another_cluster_that_comes_twice_is_answered_once() -> None:
    bench = head(["e"], ["h2"])
    bench.hear("e", local("e"))
    bench.hear("h2", ClusterLoad("h2", IDLE_EDGE, "OK", 1))
    for _ in range(2):
        bench.hear("h2", Control({"to": "h"}, "h2", SessionRequest("x")))
    bench.hear("h2", Control({"to": "h"}, "h2", SessionEnd("x")))
    bench.hear("h2", Control({"to": "h"}, "h2", SessionRequest("x")))
    assert bench.bodies(ClusterAccept) == [ClusterAccept("x")]
    assert bench.bodies(SessionReject) == []


def head(edges: list[str], others: list[str]) -> Bench:
    bench = Bench(Head("h", "h.1"))
    for name in edges:
        bench.tell(events.LinkOpened(name, is_head=False))
    for name in others:
        bench.tell(events.LinkOpened(name, is_head=True))
        bench.hear(name, Sync([], [f"to = '{HEADS}'", f"to = '{name}'"]))
    return bench


def cluster_loads(bench: Bench) -> list[tuple[str, ClusterLoad]]:
    return [(each.broker, each.message) for each in bench.links if isinstance(each.message, ClusterLoad)]


def test_a_head_says_the_averages_of_its_edges_to_the_heads_next_to_it() -> None:
    bench = head(["e", "f"], ["h2"])
    bench.hear("e", local("e", Metrics(0.2, 0.4, 0.02)))
    bench.hear("f", local("f", Metrics(0.4, 0.0, 0.04)))
    bench.wait(5.0)
    to, load = cluster_loads(bench)[-1]
    assert (to, load.cluster, load.state, load.hops) == ("h2", "h", "OK", 1)
    assert load.metrics == pytest.approx((0.3, 0.2, 0.03))


def test_a_cluster_is_not_available_if_one_of_its_edges_is_overloaded() -> None:
    bench = head(["e", "f"], ["h2"])
    bench.hear("e", local("e", state="N/A"))
    bench.hear("f", local("f"))
    bench.wait(5.0)
    assert cluster_loads(bench)[-1][1].state == "N/A"


def test_a_head_without_edges_passes_a_clusters_load_on_for_one_hop() -> None:
    bench = head([], ["h1", "h2", "h3"])
    load = ClusterLoad("h1", IDLE_EDGE, "OK", 1)
    bench.hear("h1", load)
    further = ClusterLoad("h1", IDLE_EDGE, "OK", 0)
    assert cluster_loads(bench) == [("h2", further), ("h3", further)]
    bench.hear("h1", further)
    assert len(cluster_loads(bench)) == 2


def test_a_head_with_edges_passes_nothing_on() -> None:
    bench = head(["e"], ["h1", "h2"])
    bench.hear("h1", ClusterLoad("h1", IDLE_EDGE, "OK", 1))
    assert cluster_loads(bench) == []


def test_a_cluster_with_more_than_another_asks_it_for_a_session() -> None:
    bench = head(["e"], ["h2"])
    bench.hear("e", local("e", BUSY_EDGE))
    bench.hear("h2", ClusterLoad("h2", IDLE_EDGE, "OK", 1))
    bench.wait(5.0)
    assert len(bench.bodies(SessionRequest)) == 1


@pytest.mark.parametrize(
    ("more", "asks"),
    [
        (Metrics(0.42, 0.3, 0.03), False),
        (Metrics(0.46, 0.3, 0.03), True),
        (Metrics(0.3, 0.42, 0.03), False),
        (Metrics(0.3, 0.46, 0.03), True),
        (Metrics(0.3, 0.3, 0.042), False),
        (Metrics(0.3, 0.3, 0.046), True),
    ],
)
def test_clusters_bear_a_larger_difference_than_edges_do(more: Metrics, asks: bool) -> None:
    bench = head(["e"], ["h2"])
    bench.hear("e", local("e", more))
    bench.hear("h2", ClusterLoad("h2", Metrics(0.3, 0.3, 0.03), "OK", 1))
    bench.wait(5.0)
    assert bool(bench.bodies(SessionRequest)) == asks


@pytest.mark.parametrize(("cpu", "memory"), [(0.97, 0.0), (0.0, 0.97)])
def test_a_cluster_of_which_no_edge_can_take_more_asks_for_help_whatever_it_lacks(cpu: float, memory: float) -> None:
    bench = head(["e", "f"], ["h2"])
    bench.hear("e", local("e", state="N/A", cpu=cpu, memory=memory))
    bench.hear("f", local("f", state="N/A", cpu=0.92))
    bench.hear("h2", ClusterLoad("h2", IDLE_EDGE, "OK", 1))
    bench.wait(5.0)
    assert len(bench.bodies(SessionRequest)) == 1


@pytest.mark.parametrize(("cpu", "others"), [(0.97, 0.5), (0.93, 0.93)])
def test_a_cluster_in_which_an_edge_can_help_or_none_must_be_relieved_asks_nobody(cpu: float, others: float) -> None:
    bench = head(["e", "f"], ["h2"])
    bench.hear("e", local("e", state="N/A", cpu=cpu))
    bench.hear("f", local("f", cpu=others))
    bench.hear("h2", ClusterLoad("h2", IDLE_EDGE, "OK", 1))
    bench.wait(5.0)
    assert bench.bodies(SessionRequest) == []


def test_an_edge_says_its_ratios_of_cpu_and_memory() -> None:
    bench = edge()
    bench.tell(events.Gauged(0.03, 1_000_000.0, cpu=0.4, memory=30.0, memory_bytes=100.0))
    bench.wait(5.0)
    said = bench.bodies(LocalLoad)[-1]
    assert isinstance(said, LocalLoad)
    assert (said.cpu, said.memory) == (0.4, 0.3)


def balanced_clusters(seconds: float, later: Metrics = BUSY_EDGE) -> Bench:
    """A head whose edges cannot be made more even with those of h2; then they say something for a while."""
    bench = head(["e"], ["h2"])
    bench.hear("e", local("e", BUSY_EDGE, balanced=["x"]))
    bench.hear("h2", ClusterLoad("h2", IDLE_EDGE, "OK", 1))
    bench.wait(5.0)
    (request,) = bench.bodies(SessionRequest)
    assert isinstance(request, SessionRequest)
    bench.hear("h2", Control({"to": "h"}, "h2", ClusterAccept(request.id)))
    for step in range(int(30 + seconds) // 5):
        bench.hear("e", local("e", later if step > 6 else BUSY_EDGE, balanced=["x"]))
        bench.hear("h2", local("x", cluster="h2", balanced=["e"]))
        bench.hear("h2", ClusterLoad("h2", IDLE_EDGE, "OK", 1))
        bench.hear("h2", Control({"to": "h"}, "h2", ClusterAlive(request.id)))
        bench.wait(5.0)
    assert SessionEnd(request.id, vain=True) in bench.bodies(SessionEnd)
    return bench


def test_a_cluster_whose_edges_are_as_even_with_anothers_as_can_be_does_not_ask_it_again() -> None:
    assert len(balanced_clusters(300.0).bodies(SessionRequest)) == 1


def test_a_cluster_that_has_changed_asks_again() -> None:
    assert len(balanced_clusters(300.0, Metrics(0.8, 0.6, 0.06)).bodies(SessionRequest)) > 1


def test_a_cluster_that_is_told_so_by_the_other_does_not_ask_again_either() -> None:
    bench = head(["e"], ["h2"])
    bench.hear("e", local("e", BUSY_EDGE))
    bench.hear("h2", ClusterLoad("h2", IDLE_EDGE, "OK", 1))
    bench.wait(5.0)
    (request,) = bench.bodies(SessionRequest)
    assert isinstance(request, SessionRequest)
    bench.hear("h2", Control({"to": "h"}, "h2", ClusterAccept(request.id)))
    bench.hear("h2", Control({"to": "h"}, "h2", SessionEnd(request.id, vain=True)))
    for _ in range(20):
        bench.hear("e", local("e", BUSY_EDGE))
        bench.hear("h2", ClusterLoad("h2", IDLE_EDGE, "OK", 1))
        bench.wait(5.0)
    assert len(bench.bodies(SessionRequest)) == 1


WEAK, STRONG = Power(0.002, 20_000.0), Power(0.001, 40_000.0)


def loaded(
    parents: dict[str, str | None], edges: dict[str, str], powers: dict[str, Power], seconds: float
) -> OverlaySystem:
    """Everybody comes to the first edge, and much is published for so long."""
    system = OverlaySystem(parents, edges, powers=powers)
    system.start_publisher("p", next(iter(parents)))
    first = next(iter(edges))
    for number in range(30):
        system.subscribe(f"s{number}", f"n >= {number / 3}", [first])

    def publish(number: int) -> None:
        if number < 10 * seconds:
            system.publish("p", n=number % 10)
            system.clock.after(0.1, publish, number + 1)

    publish(0)
    return system


@pytest.mark.slow
def test_edges_of_a_cluster_come_to_balance() -> None:
    system = loaded({"h": None}, {"a": "h", "b": "h"}, {"a": WEAK, "b": STRONG}, 510.0)
    system.advance(400.0)
    loads = [edge.core.surroundings.load() for edge in system.edges.values()]
    one, two = [load.metrics for load in loads if load]
    assert one.largest_difference(two, 0.1) <= 0.12
    assert all(len(edge.core.subscriptions) for edge in system.edges.values())
    for edge in system.edges.values():
        edge.power = POWERFUL
    system.advance(120.0)
    assert [text for text in violations(system) if "lost" in text or "twice" in text or " is on " in text] == []


def apart(system: OverlaySystem) -> float:
    """By how much the averages of the two clusters differ."""
    one, two = (head.core.federation.metrics() for head in system.heads.values())
    assert one
    assert two
    return one.largest_difference(two, Tuning().normal_delay)


@pytest.mark.slow
def test_clusters_come_to_balance_and_forget_each_other() -> None:
    edges = {"a": "h1", "b": "h1", "c": "h2", "d": "h2"}
    system = loaded({"h1": None, "h2": "h1"}, edges, dict.fromkeys(edges, WEAK), 1090.0)
    system.advance(60.0)
    assert apart(system) > Tuning().between_clusters.ratio
    system.advance(840.0)
    assert apart(system) <= Tuning().between_clusters.ratio
    assert all(len(edge.core.subscriptions) for edge in system.edges.values())
    for edge in system.edges.values():
        edge.power = POWERFUL
    system.advance(200.0)
    assert all(edge.core.surroundings.joined == [] for edge in system.edges.values())
    assert all(head.core.alliance.other is None for head in system.heads.values())


def test_one_connection_holds_one_subscription_and_leaves_nothing_behind() -> None:
    bench = edge(1)
    assert isinstance(bench.core, Edge)
    for name in ("ann", "bob", "ann", "cy"):
        bench.tell(events.ClientSaid(7, Subscribe(name, f"n > {len(bench.links)}")))
        assert len(bench.core.subscriptions.by_filter) == 2
    bench.tell(events.ClientLost(7))
    assert list(bench.core.subscriptions.by_filter.values()) == [["s0"]]
    assert bench.core.subscriptions.get("ann") is None


def test_a_filter_that_cannot_be_read_ends_what_its_connection_had() -> None:
    bench = edge(1)
    assert isinstance(bench.core, Edge)
    bench.tell(events.ClientSaid(7, Subscribe("ann", "n > 1")))
    bench.tell(events.ClientSaid(7, Subscribe("ann", "n >")))
    assert list(bench.core.subscriptions.by_filter.values()) == [["s0"]]


def test_a_subscriber_that_lies_about_how_many_migrate_keeps_nobody_busy_for_ever() -> None:
    bench = edge(1)
    assert isinstance(bench.core, Edge)
    bench.hear("h", Control({"to": "e"}, "f", SessionRequest("s")))
    assert bench.core.surroundings.state() is Availability.BUSY
    bench.tell(events.ClientSaid(7, Subscribe("liar", "n > 1", session="s", migrating=10**15)))
    bench.wait(3600.0)
    assert bench.core.surroundings.state() is not Availability.BUSY


def test_a_connection_that_introduces_itself_again_and_again_is_one_publisher() -> None:
    bench = Bench(Head("h", "h.1"))
    for name in ("p", "q", "p"):
        bench.tell(events.ClientSaid(1, Introduce(name)))
    bench.tell(events.ClientSaid(1, Publish(1, {"n": 1.0})))
    bench.tell(events.LogStored(1))
    assert [each.message for each in bench.clients[-1:]] == [Stored(1)]
    bench.tell(events.ClientSaid(2, Introduce("q")))
    bench.tell(events.ClientLost(1))
    bench.tell(events.ClientSaid(2, Publish(1, {"n": 1.0})))
    bench.tell(events.LogStored(2))
    assert (bench.clients[-1].client, bench.clients[-1].message) == (2, Stored(1))


def test_nobody_uses_up_the_numbers_of_a_publisher() -> None:
    bench = Bench(Head("h", "h.1"))
    bench.tell(events.ClientSaid(1, Introduce("p")))
    bench.tell(events.ClientSaid(1, Publish(2**61, {"n": 1.0})))
    (refused,) = [each.message for each in bench.clients if isinstance(each.message, Refused)]
    assert "left out" in refused.message
    bench.tell(events.ClientSaid(1, Introduce("p")))
    assert bench.clients[-1].message == Known(0, "h.1")
