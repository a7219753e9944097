"""A subscriber: where it goes, what it drops, and how it moves."""

from __future__ import annotations

from random import Random

import pytest

from tocsin.overlay.dialogue import (
    Began,
    Gap,
    HeadCursor,
    Move,
    Note,
    Passed,
    Refused,
    Settle,
    Subscribe,
    ToSubscriber,
    Unsubscribe,
)
from tocsin.overlay.events import Tick
from tocsin.overlay.subscriber import (
    SERVED_SECONDS,
    CloseEdge,
    EdgeLost,
    EdgeOpened,
    EdgeRefused,
    EdgeSaid,
    Give,
    GiveUp,
    Miss,
    OpenEdge,
    OverlaySubscriber,
    SendEdge,
    Start,
    SubscriberAction,
)


def note(offset: int, head: str = "h") -> Note:
    return Note(head, offset, "p", offset, {})


def at(offset: int, incarnation: str = "h.1") -> HeadCursor:
    return HeadCursor(offset, incarnation)


def began(offset: int, head: str = "h") -> Began:
    return Began(head, offset, "h.1", "h.1", 2**63 - 1)


def said(me: OverlaySubscriber, connection: int, *messages: ToSubscriber) -> list[SubscriberAction]:
    return [action for message in messages for action in me.handle(0.0, EdgeSaid(connection, message))]


@pytest.fixture
def me() -> OverlaySubscriber:
    """One that edge a serves, on connection 1."""
    subscriber = OverlaySubscriber("me", "x > 1", ["a", "b"], Random(1))
    assert subscriber.handle(0.0, Start()) == [OpenEdge(1, "a")]
    assert subscriber.handle(0.0, EdgeOpened(1)) == [SendEdge(1, Subscribe("me", "x > 1"))]
    assert said(subscriber, 1, began(4)) == []
    return subscriber


def test_what_is_not_beyond_the_cursor_is_dropped(me: OverlaySubscriber) -> None:
    assert said(me, 1, note(4), note(5), note(5), note(7), note(6)) == [Give(note(5)), Give(note(7))]
    assert me.cursors == {"h": at(7)}


def test_a_cursor_goes_on_without_notes(me: OverlaySubscriber) -> None:
    assert said(me, 1, Passed("h", 9), note(8)) == []
    assert me.cursors == {"h": at(9)}


def test_a_gap_is_told_as_far_as_it_was_not_had(me: OverlaySubscriber) -> None:
    assert said(me, 1, note(6), Gap("h", 5, 9), Gap("h", 5, 9)) == [Give(note(6)), Miss(Gap("h", 7, 9))]


def test_who_loses_its_edge_goes_to_the_next_with_its_cursors(me: OverlaySubscriber) -> None:
    said(me, 1, note(6))
    assert me.handle(1.0, EdgeLost(1)) == []
    wake = me.wake()
    assert wake
    assert me.handle(wake, Tick()) == [OpenEdge(2, "b")]
    assert me.handle(wake, EdgeOpened(2)) == [SendEdge(2, Subscribe("me", "x > 1", {"h": at(6)}))]


def test_whoever_was_beyond_what_a_head_still_has_is_told_and_begins_anew(me: OverlaySubscriber) -> None:
    said(me, 1, note(6))
    assert said(me, 1, Began("h", 0, "h.2", "h.1", -1), note(1), note(6)) == [
        Miss(Gap("h", 7, None)),
        Give(note(1)),
        Give(note(6)),
    ]
    assert me.cursors == {"h": at(6, "h.2")}
    assert said(me, 1, Began("h", 5, "h.3", "h.2", 5), note(6)) == [Miss(Gap("h", 7, None)), Give(note(6))]


def test_a_head_that_only_started_again_goes_on(me: OverlaySubscriber) -> None:
    said(me, 1, note(6))
    assert said(me, 1, Began("h", 6, "h.2", "h.1", 6), note(6), note(7)) == [Give(note(7))]
    assert me.cursors == {"h": at(7, "h.2")}


def test_even_who_had_nothing_is_told_of_a_log_that_is_lost() -> None:
    me = OverlaySubscriber("me", "x > 1", ["a"], Random(1), {"h": at(0)})
    me.handle(0.0, Start())
    me.handle(0.0, EdgeOpened(1))
    assert said(me, 1, Began("h", 0, "h.2", "h.1", -1)) == [Miss(Gap("h", 1, None))]


def test_who_begins_with_all_that_is_kept_has_missed_nothing() -> None:
    me = OverlaySubscriber("me", "x > 1", ["a"], Random(1), {"h": HeadCursor(0)})
    me.handle(0.0, Start())
    me.handle(0.0, EdgeOpened(1))
    assert said(me, 1, Began("h", 0, "h.2", "", 0), note(1)) == [Give(note(1))]


def test_an_edge_that_was_told_of_another_incarnation_is_asked_again(me: OverlaySubscriber) -> None:
    moving(me)
    said(me, 1, Began("h", 0, "h.2", "h.1", -1), note(1))
    again = [SendEdge(2, Subscribe("me", "x > 1", {"h": at(1, "h.2")}, "session", 3))]
    assert said(me, 2, began(4), note(5)) == again
    assert said(me, 2, Began("h", 1, "h.2", "h.2", 2**63 - 1), note(2)) == [Give(note(2))]


def moving(me: OverlaySubscriber) -> list[SubscriberAction]:
    actions = said(me, 1, Move("b", "session", 3))
    return actions + me.handle(0.0, EdgeOpened(2))


def test_who_moves_is_served_by_both_until_it_may_leave(me: OverlaySubscriber) -> None:
    assert moving(me) == [OpenEdge(2, "b"), SendEdge(2, Subscribe("me", "x > 1", {"h": at(4)}, "session", 3))]
    assert said(me, 2, began(4), note(5)) == [Give(note(5))]
    assert said(me, 1, note(5), note(6)) == [Give(note(6))]
    assert said(me, 1, Settle("session", 2.0)) == []
    assert me.wake() == 2.0
    assert said(me, 2, note(6), note(7)) == [Give(note(7))]
    assert me.handle(2.0, Tick()) == [SendEdge(1, Unsubscribe()), CloseEdge(1)]
    assert me.edge == "b"


def test_an_edge_that_begins_beyond_the_cursor_is_asked_again(me: OverlaySubscriber) -> None:
    moving(me)
    said(me, 1, began(21, "other"))
    again = [SendEdge(2, Subscribe("me", "x > 1", {"h": at(4), "other": at(21)}, "session", 3))]
    assert said(me, 2, began(26, "other")) == again
    assert said(me, 2, note(27, "other")) == []
    assert said(me, 1, note(23, "other")) == [Give(note(23, "other"))]
    assert said(me, 2, began(21, "other"), note(23, "other"), note(27, "other")) == [Give(note(27, "other"))]


def test_whom_the_other_edge_does_not_serve_stays(me: OverlaySubscriber) -> None:
    moving(me)
    assert said(me, 1, Settle("session", 2.0)) == []
    assert me.wake() == SERVED_SECONDS
    assert me.handle(SERVED_SECONDS, Tick()) == [CloseEdge(2)]
    assert (me.edge, me.wake()) == ("a", None)
    assert said(me, 2, note(5)) == []


def test_who_may_leave_before_it_hears_from_the_other_edge_goes_when_it_does(me: OverlaySubscriber) -> None:
    moving(me)
    assert said(me, 1, Settle("session", 2.0)) == []
    assert me.handle(2.0, Tick()) == []
    heard = me.handle(3.0, EdgeSaid(2, began(4)))
    assert heard == [SendEdge(1, Unsubscribe()), CloseEdge(1)]
    assert (me.edge, me.wake()) == ("b", None)


def test_who_cannot_reach_the_other_edge_stays(me: OverlaySubscriber) -> None:
    moving(me)
    me.handle(0.0, EdgeLost(2))
    assert said(me, 1, Settle("session", 2.0), note(5)) == [Give(note(5))]
    assert (me.edge, me.wake()) == ("a", None)


def test_whose_edge_dies_on_the_way_is_at_the_other(me: OverlaySubscriber) -> None:
    moving(me)
    assert me.handle(0.0, EdgeLost(1)) == []
    assert (me.edge, me.wake()) == ("b", None)
    assert said(me, 2, began(4), note(5)) == [Give(note(5))]


def test_whom_the_other_edge_refuses_stays(me: OverlaySubscriber) -> None:
    moving(me)
    assert me.handle(0.0, EdgeRefused(2, "not this token")) == []
    assert said(me, 1, note(5), Settle("session", 1.0)) == [Give(note(5))]
    assert (me.edge, me.wake()) == ("a", None)
    assert said(me, 1, Move("b", "again", 3)) == [OpenEdge(3, "b")]
    assert said(me, 3, Refused("no")) == [CloseEdge(3)]
    assert said(me, 1, note(6)) == [Give(note(6))]


def test_whom_its_own_edge_refuses_while_it_moves_goes_on_at_the_other(me: OverlaySubscriber) -> None:
    moving(me)
    assert me.handle(0.0, EdgeRefused(1, "too large")) == []
    assert me.edge == "b"


def test_who_is_refused_tries_the_other_edges_and_gives_up_when_all_have(me: OverlaySubscriber) -> None:
    me.handle(0.0, EdgeLost(1))
    now = me.wake() or 0.0
    assert me.handle(now, Tick()) == [OpenEdge(2, "b")]
    assert me.handle(now, EdgeRefused(2, "not this token")) == []
    now = me.wake() or 0.0
    assert me.handle(now, Tick()) == [OpenEdge(3, "a")]
    assert me.handle(now, EdgeLost(3)) == []
    now = me.wake() or 0.0
    assert me.handle(now, Tick()) == [OpenEdge(4, "b")]
    assert me.handle(now, EdgeRefused(4, "not this token")) == []
    now = me.wake() or 0.0
    assert me.handle(now, Tick()) == [OpenEdge(5, "a")]
    assert me.handle(now, EdgeRefused(5, "nor here")) == [CloseEdge(5), GiveUp("nor here")]
    assert me.wake() is None


def test_what_was_refused_before_an_edge_served_it_does_not_count(me: OverlaySubscriber) -> None:
    me.handle(0.0, EdgeRefused(1, "not this token"))
    now = me.wake() or 0.0
    assert me.handle(now, Tick()) == [OpenEdge(2, "b")]
    said(me, 2, began(4))
    assert me.handle(now, EdgeRefused(2, "expired")) == []
    assert me.wake() is not None


def test_who_is_refused_gives_up(me: OverlaySubscriber) -> None:
    assert said(me, 1, Refused("no")) == [CloseEdge(1), GiveUp("no")]
    assert me.wake() is None
