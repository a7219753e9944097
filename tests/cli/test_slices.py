"""``tocsin slices`` and ``tocsin worker``, as an operator meets them."""

from __future__ import annotations

import json

import pytest
from msgspec import structs

from tests.cli.program import Program
from tests.data.server.memory import MemoryCluster
from tocsin.cli.sharing import ranges
from tocsin.model.slices import FeedSlices, NodeFigures, NodesNeeded, SliceFigures


@pytest.fixture
def shared(cluster: MemoryCluster) -> FeedSlices:
    """A feed of eight slices and two nodes, one of which has a long name and much to do."""
    owners = ["data", "data", "a-node-with-a-name", None, "data", "data", "data", "data"]
    slices = [
        SliceFigures(number, owner, 1_234_567, 345_678, 10**9, 12_345_678, "data" if number == 2 else None, 0.321)
        for number, owner in enumerate(owners)
    ]
    nodes = [
        NodeFigures("a-node-with-a-name", "draining", "overloaded", 2, 1, 123 * 10**9, 9 * 10**9, 1, 1, 10**6, 119.0),
        NodeFigures("data", "serving", "underloaded", 2, 6, 0, 0, 0.05, 0.1, 0, 0.2),
    ]
    feed = FeedSlices("reports", "Reports", True, "", 7, slices, nodes, 41, "balanced", {"n3": "it may not"})
    cluster.shared = [feed, FeedSlices("people", "People", False, "People is keyed")]
    return feed


def test_who_has_what_is_shown_within_80_columns(tocsin: Program, shared: FeedSlices) -> None:
    shown = tocsin("slices").out.splitlines()
    assert max(map(len, shown)) <= 80
    assert shown[0] == "reports into Reports: 8 slices, 2 nodes, 1 moving, 41 moved, term 7"
    assert " ".join(shown[2].split()) == "a-node-with-a-name draining 1 123 GB/s 9 GB 1 M 119 s 100% 100%"
    assert shown[3].split()[:2] == ["data", "underloaded"]
    assert shown[4:9] == [
        "nobody has 3",
        "n3 cannot process it: it may not",
        "moving 2 from a-node-with-a-name to data",
        "a-node-with-a-name has 2",
        "data has 0-1 4-7",
    ]
    assert "people into People: not shared (People is keyed)" in shown


def test_who_does_not_get_on_and_what_is_left_out_is_named(
    tocsin: Program, cluster: MemoryCluster, shared: FeedSlices
) -> None:
    slices = [structs.replace(shared.slices[0], left_out="it cannot be read"), *shared.slices[1:]]
    nodes = [shared.nodes[0], structs.replace(shared.nodes[1], state="failing", problem="Kafka does not answer")]
    cluster.shared = [structs.replace(shared, slices=slices, nodes=nodes)]
    shown = tocsin("slices").out.splitlines()
    assert shown[3].split()[:2] == ["data", "failing"]
    assert "data does not get on: Kafka does not answer" in shown
    assert "0 is left out by data: it cannot be read" in shown


def test_each_slice_can_be_shown(tocsin: Program, shared: FeedSlices) -> None:
    shown = tocsin("slices", "--each", "--feed", "reports").out.splitlines()
    assert max(map(len, shown)) <= 80
    assert "3 nobody 1.23 MB/s 346 kB 12,345,678 1,000,000,000 0.32 s" in [" ".join(line.split()) for line in shown]
    assert not any("people" in line for line in shown)


def test_everything_can_be_had_as_json(tocsin: Program, shared: FeedSlices) -> None:
    shown = json.loads(tocsin("slices", "--json").out)
    assert [feed["feed"] for feed in shown["feeds"]] == ["reports", "people"]


def test_a_feed_that_is_not_there_is_an_error(tocsin: Program, shared: FeedSlices) -> None:
    assert "there is no feed report (did you mean reports?)" in tocsin("slices", "--feed", "report").err


def test_without_feeds_it_says_what_makes_one(tocsin: Program, cluster: MemoryCluster) -> None:
    assert tocsin("slices").out == "no feeds yet; CREATE FEED makes one\n"


def test_a_node_is_drained_and_no_more(tocsin: Program, cluster: MemoryCluster) -> None:
    assert "n1 is being emptied" in tocsin("slices", "drain", "n1").err
    assert cluster.drained == {"n1": True}
    assert "n1 may have slices again" in tocsin("slices", "undrain", "n1").err
    assert cluster.drained == {"n1": False}


def test_runs_of_slices_are_shown_as_one() -> None:
    assert ranges([0, 1, 2, 3, 7, 9, 10]) == "0-3 7 9-10"
    assert ranges([]) == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "worker.token is empty, and the data cluster lets nobody in without"),
        (("--name", "a b"), 'worker.name = "a b"'),
        (("--master", "nowhere"), "spark.master"),
        (("--head", ""), "worker.token is empty"),
    ],
)
def test_a_worker_that_cannot_begin_says_what_to_do(tocsin: Program, arguments: tuple[str, ...], message: str) -> None:
    run = tocsin("worker", *arguments)
    assert run.status == 1
    assert message in run.err


@pytest.mark.parametrize(
    ("needed", "shown"),
    [
        (NodesNeeded(wanted=1), "all nodes are busy: one more is wanted ('tocsin worker')"),
        (NodesNeeded(spare="n1"), "not needed, may be stopped: n1"),
        (NodesNeeded(True, 0, "n1", ["n1"]), "not needed, leaves when it is empty: n1"),
    ],
)
def test_whether_there_are_enough_nodes_is_shown(
    tocsin: Program, cluster: MemoryCluster, shared: FeedSlices, needed: NodesNeeded, shown: str
) -> None:
    cluster.needed = needed
    assert shown in tocsin("slices").out.splitlines()
    assert json.loads(tocsin("slices", "--json").out)["needed"]["wanted"] == needed.wanted
