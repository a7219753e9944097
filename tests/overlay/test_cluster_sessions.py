"""Load messages of clusters, and sessions between heads."""

from __future__ import annotations

import pytest

from tests.overlay.bench import BUSY_EDGE, IDLE_EDGE, Bench, head, local
from tocsin.overlay.head import Head
from tocsin.overlay.load import Metrics
from tocsin.overlay.messages import (
    ClusterAccept,
    ClusterAlive,
    ClusterLoad,
    Control,
    SessionEnd,
    SessionReject,
    SessionRequest,
)


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
