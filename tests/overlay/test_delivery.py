"""Heads, edges, publishers and subscribers together, on the virtual clock."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tocsin.broker.backoff import FIRST, LONGEST, STEADY
from tocsin.overlay.limits import OverlayLimits
from tocsin.simulate.overlay.invariants import violations
from tocsin.simulate.overlay.system import OverlaySystem

CHAIN: dict[str, str | None] = {"h1": None, "h2": "h1", "h3": "h2"}
EDGES = {"a": "h1", "b": "h3", "c": "h3"}


@pytest.fixture
def system() -> OverlaySystem:
    """Three heads in a chain, with a publisher at the first."""
    system = OverlaySystem(CHAIN, EDGES, limits=OverlayLimits(replay_publications=10))
    system.start_publisher("p", "h1")
    system.advance(3.0)
    return system


def sizes(system: OverlaySystem, name: str) -> list[float | str]:
    return [note.content["size"] for note in system.albums[name].notes]


def publish(system: OverlaySystem, *sizes: int) -> None:
    for size in sizes:
        system.publish("p", size=size)
    system.advance(2.0)


def test_a_publication_reaches_who_wants_it_at_any_edge(system: OverlaySystem) -> None:
    system.subscribe("near", "size > 2", ["a"])
    system.subscribe("far", "size > 5", ["b"])
    system.advance(2.0)
    publish(system, 1, 3, 6)
    assert (sizes(system, "near"), sizes(system, "far")) == ([3, 6], [6])
    assert violations(system) == []


def test_only_what_somebody_wants_leaves_a_cluster(system: OverlaySystem) -> None:
    system.subscribe("far", "size > 5", ["b"])
    system.advance(2.0)
    assert [str(each) for each in system.heads["h1"].core.links.publications.filters_of("h2")] == ["size > 5"]
    system.subscribe("farther", "size > 3", ["c"])
    system.advance(2 * system.limits.linger_seconds)
    assert [str(each) for each in system.heads["h1"].core.links.publications.filters_of("h2")] == ["size > 3"]
    assert violations(system) == []


def test_who_comes_to_another_edge_goes_on_where_it_was(system: OverlaySystem) -> None:
    system.subscribe("me", "size > 2", ["a"])
    system.advance(2.0)
    publish(system, 3)
    system.crash("me")
    publish(system, 1, 4, 5)
    system.start_subscriber("me", ["c"])
    system.advance(2.0)
    publish(system, 6)
    assert sizes(system, "me") == [3, 4, 5, 6]
    assert violations(system) == []


def test_what_is_older_than_the_log_is_told_as_a_gap(system: OverlaySystem) -> None:
    system.subscribe("me", "size > 2", ["a"])
    system.advance(2.0)
    system.crash("me")
    publish(system, *range(40))
    system.crash("h1")
    system.start_head("h1")
    system.start_subscriber("me", ["b"])
    system.advance(10.0)
    assert sizes(system, "me") == list(range(30, 40))
    (gap,) = system.albums["me"].gaps
    assert (gap.head, gap.first, gap.last) == ("h1", 1, 30)
    assert violations(system) == []


def test_a_head_that_starts_again_has_what_it_confirmed(system: OverlaySystem) -> None:
    system.subscribe("far", "size > 2", ["b"])
    system.advance(2.0)
    publish(system, 3)
    system.crash("h1")
    publish(system, 4)
    system.start_head("h1")
    system.advance(10.0)
    assert sizes(system, "far") == [3, 4]
    assert violations(system) == []


def test_a_head_that_lost_its_disk_is_noticed_and_gone_on_with(system: OverlaySystem) -> None:
    system.subscribe("far", "size > 2", ["b"])
    system.subscribe("away", "size > 2", ["a"])
    system.advance(2.0)
    publish(system, 3, 4)
    system.crash("away")
    system.lose_disk("h1")
    publish(system, 5)
    system.start_head("h1")
    system.advance(10.0)
    publish(system, 6)
    system.start_subscriber("away", ["c"])
    system.advance(10.0)
    for name in ("far", "away"):
        assert sizes(system, name) == [3, 4, 5, 6]
        assert [(gap.head, gap.first, gap.last) for gap in system.albums[name].gaps] == [("h1", 3, None)]
    assert violations(system) == []


def test_an_older_copy_of_a_heads_disk_is_gone_on_with_where_they_part(system: OverlaySystem) -> None:
    system.subscribe("ahead", "size > 2", ["b"])
    system.advance(2.0)
    publish(system, 3)
    system.disks["h1"].copy()
    system.subscribe("behind", "size > 2", ["a"])
    system.advance(2.0)
    system.crash("behind")
    publish(system, 4)
    system.restore_disk("h1")
    system.start_head("h1")
    system.start_subscriber("behind", ["a"])
    system.advance(10.0)
    publish(system, 5)
    assert (sizes(system, "ahead"), sizes(system, "behind")) == ([3, 4, 5], [5])
    assert [(gap.first, gap.last) for gap in system.albums["ahead"].gaps] == [(3, None)]
    assert system.albums["behind"].gaps == []
    assert violations(system) == []


def test_what_is_published_while_a_cluster_is_cut_off_comes_later(system: OverlaySystem) -> None:
    system.subscribe("far", "size > 2", ["b"])
    system.advance(2.0)
    system.network.sever("h2", "h3")
    system.advance(20.0)
    publish(system, 3, 4)
    assert sizes(system, "far") == []
    system.network.mend_all()
    system.advance(10.0)
    assert sizes(system, "far") == [3, 4]
    assert violations(system) == []


def test_a_filter_that_cannot_be_read_is_refused(system: OverlaySystem) -> None:
    system.subscribe("me", "size >", ["a"])
    system.advance(2.0)
    assert "a value is expected" in system.albums["me"].given_up


def test_a_head_that_is_away_is_dialled_as_servers_do(system: OverlaySystem, monkeypatch: pytest.MonkeyPatch) -> None:
    dialled: list[float] = []
    dial = system.network.dial

    def counting(host: str, *rest: Any) -> Any:
        if host == "a":
            dialled.append(system.clock.now)
        return dial(host, *rest)

    monkeypatch.setattr(system.network, "dial", counting)
    system.advance(STEADY)
    system.crash("h1")
    system.advance(60.0)
    waits = [later - earlier for earlier, later in pairwise(dialled)]
    assert waits[0] < 2 * FIRST + 1.0
    assert all(wait >= LONGEST / 2 for wait in waits[7:])
    assert len(waits) < 30
