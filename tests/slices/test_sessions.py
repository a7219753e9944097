"""Slices move while data flows, whoever dies at whatever step: each record is processed once."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import structs

from tests.slices.examples import LIMITS, SmallSystem
from tocsin.simulate.slices.invariants import violations
from tocsin.slices import events
from tocsin.slices.head import HeadCore
from tocsin.slices.messages import (
    AddSlices,
    CommitRefused,
    FromHead,
    Hello,
    NodeReport,
    RemoveSlices,
    SliceLoad,
    SliceState,
    UpdateSlices,
)
from tocsin.slices.registry import NodeMember
from tocsin.slices.sessions import Transfer


def actions_of(small: SmallSystem) -> list[tuple[str, str, str]]:
    """The chapter's actions as they are sent from now on: who, which, and to which state."""
    seen: list[tuple[str, str, str]] = []

    def note(node: str, message: FromHead) -> None:
        match message:
            case AddSlices(_, session, grants) if session:
                seen.append((node, "add", str(grants[0].state)))
            case UpdateSlices(_, _, grants):
                seen.append((node, "update", str(grants[0].state)))
            case RemoveSlices():
                seen.append((node, "remove", ""))

    small.system.sent = note
    return seen


def test_a_slice_moves_by_the_chapters_actions_with_the_gate_last() -> None:
    small = SmallSystem()
    seen = actions_of(small)
    giver, taker = small.move(0)
    small.publish(40, 2.0)
    session, available = str(SliceState.IN_SESSION), str(SliceState.AVAILABLE)
    assert seen == [
        (taker, "add", session),
        (giver, "update", session),
        (giver, "remove", ""),
        (taker, "update", available),
    ]
    assert small.owners()[0] == taker
    small.system.advance(3.0)
    assert violations(small.system) == []


def test_the_gate_opens_exactly_where_the_giver_has_stopped() -> None:
    small = SmallSystem()
    opened: list[tuple[int, int]] = []

    def note(node: str, message: FromHead) -> None:
        if isinstance(message, UpdateSlices) and message.grants[0].state is SliceState.AVAILABLE:
            opened.append((message.grants[0].position, small.system.dataset.markers[0]))

    small.system.sent = note
    small.publish(20, 0.5)
    small.move(0)
    small.publish(60, 2.0)
    assert len(opened) == 1
    assert opened[0][0] == opened[0][1] > 0


STEPS = ("add", "update giver", "remove", "update taker")


def step_of(message: FromHead) -> str:
    match message:
        case AddSlices(_, session) if session:
            return "add"
        case UpdateSlices(_, _, grants) if grants and grants[0].state is SliceState.IN_SESSION:
            return "update giver"
        case UpdateSlices():
            return "update taker"
        case RemoveSlices():
            return "remove"
    return ""


@pytest.mark.parametrize("victim", ["giver", "taker", "head"])
@pytest.mark.parametrize("seconds", [0.0, 0.03, 0.1])
@pytest.mark.parametrize("step", STEPS)
def test_whoever_dies_at_whatever_step(step: str, seconds: float, victim: str) -> None:
    small = SmallSystem(nodes=3)
    system = small.system
    names = {"head": "head"}
    struck: list[str] = []

    def strike(node: str, message: FromHead) -> None:
        if step_of(message) == step and not struck:
            struck.append(node)
            system.clock.after(seconds, lambda: system.crash(names[victim]))

    system.sent = strike
    names["giver"], names["taker"] = small.move(0)
    small.publish(100, 3.0)
    assert struck
    system.restart_head()
    small.publish(50, 5.0)
    system.advance(12.0)
    assert violations(system) == []


def test_the_dead_ones_slices_are_taken_over_by_those_who_are_left() -> None:
    small = SmallSystem(nodes=3, slices=6)
    small.publish(30, 1.0)
    small.system.crash("a")
    small.publish(60, 4.0)
    assert set(small.owners()) == {"b", "c"}
    small.system.advance(2.0)
    assert violations(small.system) == []


def test_a_node_that_hangs_loses_its_slices_and_what_it_does_later_counts_for_nothing() -> None:
    small = SmallSystem(nodes=2)
    system = small.system
    small.publish(10, 0.5)
    system.network.sever("a", system.head.host)
    small.publish(100, 9.0)
    assert set(small.owners()) == {"b"}
    system.network.mend_all()
    small.publish(20, 4.0)
    system.advance(10.0)
    assert violations(system) == []


def test_a_node_that_talks_and_does_nothing_loses_its_slices_to_others() -> None:
    small = SmallSystem(nodes=2, limits=structs.replace(LIMITS, stuck_seconds=3.0))
    small.system.nodes["a"].power.speed = 1e-9
    small.publish(100, 9.0)
    assert set(small.owners()) == {"b"}
    assert small.system.nodes["a"].alive
    small.system.advance(2.0)
    assert violations(small.system) == []


def test_a_node_that_cannot_read_the_log_loses_its_slices_also_if_it_saw_nothing_waiting() -> None:
    small = SmallSystem(nodes=2, limits=structs.replace(LIMITS, stuck_seconds=3.0))
    small.publish(20, 1.0)
    small.system.advance(5.0)
    small.system.circumstances.blind.add("a")
    small.publish(100, 9.0)
    assert set(small.owners()) == {"b"}
    small.system.advance(2.0)
    assert violations(small.system) == []


def one_node(ends: list[int], checking: frozenset[int] = frozenset()) -> HeadCore:
    """A head whose only node says that it is well and nothing waits, while the log goes up to these ends."""
    core = HeadCore(1, [0] * len(ends), limits=structs.replace(LIMITS, stuck_seconds=3.0))
    core.handle(0.0, events.NodeSaid(1, Hello("a", 1.0, {})))
    loads = [SliceLoad(slice_, 0, 0) for slice_ in range(len(ends))]
    for seconds in range(1, 10):
        core.handle(float(seconds), events.NodeSaid(1, NodeReport(0.0, 0.0, 0.0, 0.0, loads)))
        core.handle(float(seconds), events.LogReaches(ends, checking))
        if core.registry.get("a").stuck:  # type: ignore[union-attr]
            break
    return core


def test_the_head_sees_by_itself_what_does_not_get_on_whatever_the_node_says() -> None:
    core = one_node([0, 100])
    assert core.registry.get("a").stuck  # type: ignore[union-attr]
    assert [owned.avoid for owned in core.ownership.slices] == [None, "a"]


def test_what_nobody_waits_for_or_is_being_checked_is_not_stuck() -> None:
    for core in (one_node([0, 0]), one_node([100, 100], frozenset({0, 1}))):
        assert not core.registry.get("a").stuck  # type: ignore[union-attr]
        assert [owned.owner for owned in core.ownership.slices] == ["a", "a"]


def test_who_waits_for_the_heads_disk_is_not_stuck() -> None:
    small = SmallSystem(nodes=2, limits=structs.replace(LIMITS, stuck_seconds=3.0))
    small.system.circumstances.store_seconds = 30.0
    small.publish(100, 10.0)
    assert not any(member.stuck for member in small.system.head.core.registry)


def test_whose_files_get_lost_has_no_commit_of_others_refused_and_loses_its_slices() -> None:
    small = SmallSystem(nodes=3, slices=6, limits=structs.replace(LIMITS, stuck_seconds=3.0))
    small.system.circumstances.store_seconds = 0.1
    refused = Counter[str]()
    small.system.sent = lambda node, message: refused.update([node] if isinstance(message, CommitRefused) else [])
    small.publish(60, 2.0)
    small.system.circumstances.losing.add("a")
    small.publish(240, 8.0)
    assert set(small.owners()) == {"b", "c"}
    assert refused["a"] > 5
    assert refused.keys() == {"a"}
    small.system.circumstances.losing.clear()
    small.system.advance(5.0)
    assert violations(small.system) == []


def test_who_has_lost_all_slices_since_it_was_stuck_is_tried_again_later_and_later() -> None:
    limits = structs.replace(LIMITS, stuck_seconds=3.0, longest_stuck_seconds=30.0)
    small = SmallSystem(nodes=2, slices=8, limits=limits)
    small.system.circumstances.blind.add("a")
    small.publish(100, 9.0)
    assert set(small.owners()) == {"b"}
    small.system.circumstances.blind.clear()
    small.publish(2000, 20.0)
    assert set(small.owners()) == {"a", "b"}
    member = NodeMember("n", 1.0, 0.0)
    waits = []
    for _ in range(4):
        member.stuck = False
        member.bench(100.0, limits)
        waits.append(member.stuck_until - 100.0)
    assert waits == [12.0, 24.0, 30.0, 30.0]


def test_who_cannot_read_the_log_is_given_nothing_while_others_can() -> None:
    small = SmallSystem(nodes=2, limits=structs.replace(LIMITS, stuck_seconds=1e9))
    small.system.circumstances.blind.add("a")
    small.publish(50, 5.0)
    member = small.system.head.core.registry.get("a")
    assert member is not None
    assert member.problem == "the log does not answer"
    had = small.owners().count("a")
    small.system.start_node("c")
    small.publish(50, 5.0)
    small.system.crash("c")
    small.publish(50, 5.0)
    assert small.owners().count("a") == had


def test_one_slice_that_nobody_can_read_holds_up_no_other() -> None:
    small = SmallSystem(nodes=2, slices=8, limits=structs.replace(LIMITS, stuck_seconds=20.0))
    small.publish(80, 2.0)
    small.system.circumstances.unreadable.add(3)
    small.publish(300, 10.0)
    behind = [
        small.log.end(slice_, small.system.clock.now - 2.0) - marker
        for slice_, marker in enumerate(small.system.dataset.markers)
    ]
    assert [slice_ for slice_, records in enumerate(behind) if records > 0] == [3]
    owner = small.owners()[3]
    assert owner is not None
    member = small.system.head.core.registry.get(owner)
    assert member is not None
    assert member.report is not None
    assert member.report.left_out == {3: "slice 3 cannot be read"}
    assert not member.fails
    # It may be read from elsewhere; who has told that it gets on with all others is not to blame.
    small.publish(600, 20.0)
    assert small.owners()[3] not in (owner, None)
    assert not member.fails
    small.system.circumstances.unreadable.clear()
    small.system.advance(70.0)
    assert violations(small.system) == []


def test_a_slice_that_nobody_can_read_puts_nobody_aside_when_nothing_else_comes_any_more() -> None:
    small = SmallSystem(nodes=2, slices=8, limits=structs.replace(LIMITS, stuck_seconds=60.0))
    small.publish(80, 2.0)
    small.system.circumstances.unreadable.add(3)
    small.publish(120, 4.0)
    owner = small.owners()[3]
    assert owner is not None
    member = small.system.head.core.registry.get(owner)
    assert member is not None
    problems = set[str]()
    while small.owners()[3] == owner:
        small.system.advance(1.0)
        problems.add(member.problem)
    assert problems == {""}
    assert not member.fails


def test_a_slice_that_one_node_cannot_read_goes_to_another() -> None:
    small = SmallSystem(nodes=2)
    held = small.system.nodes["a"].core.slices
    small.system.nodes["a"].tell(
        events.PreparationFailed({number: each.epoch for number, each in held.items()}, "the log is not mounted")
    )
    small.system.advance(1.0)
    assert set(small.owners()) == {"b"}


def test_a_head_that_was_replaced_can_store_nothing() -> None:
    small = SmallSystem(nodes=2)
    before = small.system.head
    small.system.start_head()
    small.publish(40, 2.0)
    assert not before.alive
    small.system.advance(8.0)
    assert violations(small.system) == []


def test_a_new_head_lets_everybody_keep_what_they_had() -> None:
    small = SmallSystem(nodes=3, slices=9, limits=structs.replace(LIMITS, settling_seconds=8.0))
    small.system.advance(10.0)
    before = small.owners()
    small.system.crash("head")
    small.system.start_head()
    small.system.advance(10.0)
    assert small.owners() == before
    assert None not in before


def test_sessions_of_one_node_are_one_after_the_other() -> None:
    small = SmallSystem(nodes=3, slices=6)
    core = small.system.head.core
    mine = [number for number, owner in enumerate(small.owners()) if owner == "a"]
    core.sessions.plan([Transfer("a", "b", (mine[0],)), Transfer("a", "c", (mine[1],))])
    most = 0
    for _ in range(200):
        small.system.head.tell(events.Tick())
        most = max(most, sum("a" in (each.giver, each.taker) for each in core.sessions))
        small.system.advance(0.02)
    assert most == 1
    assert [small.owners()[each] for each in mine] == ["b", "c"]


def test_a_session_whose_taker_cannot_read_the_log_leaves_everything_as_it_was() -> None:
    small = SmallSystem()
    small.system.circumstances.prepare_fails = 1.0
    before = small.owners()
    seen = actions_of(small)
    _giver, taker = small.move(0)
    small.system.advance(1.0)
    assert seen == [(taker, "add", str(SliceState.IN_SESSION)), (taker, "remove", "")]
    assert small.owners() == before
    small.system.circumstances.prepare_fails = 0.0
    small.publish(20, 1.0)
    small.system.advance(4.0)
    assert violations(small.system) == []


def test_a_node_that_leaves_is_emptied_first_and_ends() -> None:
    small = SmallSystem(nodes=3, slices=6)
    small.publish(60, 3.0)
    small.system.nodes["c"].tell(events.LeaveWanted())
    small.publish(200, 12.0)
    assert not small.system.nodes["c"].alive
    assert set(small.owners()) == {"a", "b"}
    small.system.advance(2.0)
    assert violations(small.system) == []


def test_node_s_plus_1_owns_nothing_and_stands_by() -> None:
    small = SmallSystem(nodes=3, slices=2)
    assert len(set(small.owners())) == 2
    (spare,) = set(small.names) - set(small.owners())
    small.system.crash(small.owners()[0] or "")
    small.system.advance(3.0)
    assert spare in small.owners()


def test_a_slice_that_kills_its_owners_does_so_more_and_more_rarely() -> None:
    small = SmallSystem(nodes=3, slices=3)
    ownership, now = small.system.head.core.ownership, 100.0
    waits = []
    for _ in range(6):
        owned = ownership[0]
        ownership.give(0, "a", ownership.next_epoch())
        ownership.take_away(0, now)
        waits.append(owned.free_at - now)
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0]
    ownership.give(0, "a", ownership.next_epoch())
    ownership.progress(0, "a", 0.0)
    ownership.take_away(0, now)
    assert ownership[0].free_at == now
