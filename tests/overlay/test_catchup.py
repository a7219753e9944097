"""What was missed comes in pieces, the next one when the last has been read, and nobody waits for a slower one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from tocsin.overlay import events
from tocsin.overlay.actions import Action, AwaitFlush, SendClient, SendLink, SendNote
from tocsin.overlay.dialogue import Began, Gap, HeadCursor, Passed, Subscribe, Unsubscribe
from tocsin.overlay.edge import Edge
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.messages import HEADS, Control, Fetch, Found, FromLink, Interrupted, Mark, Restored, Routed, Sync

LIMITS = OverlayLimits(fetch_publications=10, gather_seconds=0.5, refetch_seconds=20.0, ask_bytes=100_000)
PRESENT = 2**63 - 1


class Bench:
    """An edge of head h, which has logged a hundred publications that say their offsets."""

    def __init__(self) -> None:
        self.core, self.now = Edge("e", "h", "e.1", LIMITS), 0.0
        self.actions: list[Action] = []
        self.tell(events.LinkOpened("h", is_head=True))
        self.hear(Sync([], [f"to = '{HEADS}'", "to = 'h'"]))

    def tell(self, event: events.Event) -> None:
        self.actions += self.core.handle(self.now, event)

    def hear(self, message: FromLink) -> None:
        self.tell(events.LinkSaid("h", message))

    def subscribe(self, client: int, offset: int, where: str = "n > 0", **others: int) -> None:
        cursors = {head: HeadCursor(each, f"{head}.1") for head, each in {"h": offset, **others}.items()}
        self.tell(events.ClientSaid(client, Subscribe(f"s{client}", where, cursors)))

    def fetches(self) -> list[tuple[str, Fetch]]:
        """What was asked since the last time, and of whom."""
        sent = [action.message for action in self.actions if isinstance(action, SendLink)]
        self.actions = [action for action in self.actions if not isinstance(action, SendLink)]
        asked = [each for each in sent if isinstance(each, Control)]
        return [(each.attributes["to"], each.body) for each in asked if isinstance(each.body, Fetch)]

    def answer(self, fetch: Fetch, upto: int, last: int = 100, oldest: int = 1, head: str = "h") -> None:
        asked = fetch.cursors.get(head, {})
        offset = min(asked.values(), default=last)
        notes = [Routed(head, each, "p", each, {"n": float(each)}) for each in range(max(offset + 1, oldest), upto + 1)]
        found = Found(fetch.id, head, f"{head}.1", dict.fromkeys(asked, PRESENT), oldest, upto, last, notes)
        self.hear(Control({"to": "e"}, head, found))

    def again(self) -> list[tuple[str, Fetch]]:
        """What is asked when no answer has come for long."""
        self.now += LIMITS.refetch_seconds
        self.tell(events.Tick())
        return self.fetches()

    def had(self, client: int) -> list[int]:
        notes = [action for action in self.actions if isinstance(action, SendNote)]
        return [each.note.offset for each in notes if client in each.clients]

    def told(self, client: int) -> Sequence[object]:
        return [each.message for each in self.actions if isinstance(each, SendClient) and each.client == client]

    def awaited(self) -> list[int]:
        return [action.client for action in self.actions if isinstance(action, AwaitFlush)]

    def live(self, offset: int) -> None:
        self.hear(Routed("h", offset, "p", offset, {"n": float(offset)}))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def only(fetches: list[tuple[str, Fetch]]) -> Fetch:
    ((_, fetch),) = fetches
    return fetch


def test_the_next_piece_is_asked_for_when_the_last_was_read(bench: Bench) -> None:
    bench.subscribe(1, 80)
    bench.answer(only(bench.fetches()), 90)
    assert (bench.had(1), bench.awaited(), bench.fetches()) == (list(range(81, 91)), [1], [])
    bench.live(101)
    bench.tell(events.Flushed(1))
    ((to, fetch),) = bench.fetches()
    assert (to, fetch.cursors) == ("h", {"h": {"h.1": 90}})
    bench.answer(fetch, 101, last=101)
    bench.live(102)
    assert bench.had(1) == list(range(81, 103))
    assert bench.told(1) == [Began("h", 80, "h.1", "h.1", PRESENT), Passed("h", 90), Passed("h", 101)]
    assert bench.awaited() == [1]


def test_who_reads_slowly_keeps_nobody_waiting(bench: Bench) -> None:
    for client in (1, 2):
        bench.subscribe(client, 80)
    for _, fetch in bench.fetches():
        bench.answer(fetch, 90)
    bench.tell(events.Flushed(2))
    assert bench.fetches() == []
    bench.now = bench.core.wake() or 0.0
    bench.tell(events.Tick())
    bench.answer(only(bench.fetches()), 100)
    assert (bench.had(1), bench.had(2)) == (list(range(81, 91)), list(range(81, 101)))
    bench.tell(events.Flushed(1))
    bench.answer(only(bench.fetches()), 100)
    assert bench.had(1) == list(range(81, 101))


def test_those_who_are_as_far_share_a_piece_and_others_have_their_own(bench: Bench) -> None:
    for client, offset in enumerate((0, 5, 60, 65, 69), 1):
        bench.subscribe(client, offset)
    bench.fetches()
    bench.hear(Interrupted(["h"]))
    bench.answer(only(bench.fetches()), 10)
    assert [bench.had(client) for client in (1, 2, 3)] == [list(range(1, 11)), list(range(6, 11)), []]
    for client in (1, 2):
        bench.tell(events.Flushed(client))
    fetches = sorted((fetch for _, fetch in bench.fetches()), key=lambda fetch: fetch.cursors["h"]["h.1"])
    assert [fetch.cursors["h"] for fetch in fetches] == [{"h.1": 10}, {"h.1": 60}]
    bench.answer(fetches[1], 70)
    assert (bench.had(1)[-1], bench.had(3), bench.had(5)) == (10, list(range(61, 71)), [70])


def test_of_a_piece_for_many_each_has_what_it_wants(bench: Bench) -> None:
    for client in range(1, 9):
        bench.subscribe(client, 90, f"n > {90 + client}")
    bench.fetches()
    bench.hear(Interrupted(["h"]))
    bench.answer(only(bench.fetches()), 100)
    assert [bench.had(client) for client in range(1, 9)] == [list(range(91 + each, 101)) for each in range(1, 9)]


def test_what_is_dropped_from_the_log_between_two_pieces_is_a_gap(bench: Bench) -> None:
    bench.subscribe(1, 0)
    bench.answer(only(bench.fetches()), 10)
    bench.tell(events.Flushed(1))
    bench.answer(only(bench.fetches()), 100, oldest=91)
    assert bench.had(1) == [*range(1, 11), *range(91, 101)]
    assert bench.told(1)[-2:] == [Gap("h", 11, 90), Passed("h", 100)]


def test_a_piece_that_does_not_come_is_asked_for_again(bench: Bench) -> None:
    bench.subscribe(1, 80)
    bench.answer(only(bench.fetches()), 90)
    bench.tell(events.Flushed(1))
    lost = only(bench.fetches())
    bench.now = 30.0
    bench.tell(events.Tick())
    ((to, fetch),) = bench.fetches()
    assert (to, fetch.cursors) == (HEADS, {"h": {"h.1": 90}})
    bench.answer(lost, 100)
    assert bench.had(1)[-1] == 90
    bench.answer(fetch, 100)
    assert bench.had(1) == list(range(81, 101))


def test_a_piece_that_does_not_come_is_asked_for_again_also_if_another_head_was_in_vain(bench: Bench) -> None:
    bench.subscribe(1, 80, unknown=7)
    bench.answer(only(bench.fetches()), 90)
    asked = [bench.again() for _ in range(LIMITS.refetches + 1)]
    assert [[fetch.settled for _, fetch in fetches] for fetches in asked] == [[["h"]]] * LIMITS.refetches + [[]]
    bench.tell(events.Flushed(1))
    lost = only(bench.fetches())
    fetch = only(bench.again())
    assert (lost.cursors, fetch.cursors) == ({"h": {"h.1": 90}}, {"h": {"h.1": 90}})
    bench.answer(fetch, 100)
    assert bench.had(1) == list(range(81, 101))
    assert bench.again() == []


def test_when_the_way_is_interrupted_between_two_pieces_it_begins_again(bench: Bench) -> None:
    bench.subscribe(1, 80)
    bench.answer(only(bench.fetches()), 90)
    bench.hear(Interrupted(["h"]))
    assert only(bench.fetches()).cursors == {"h": {"h.1": 90}}


def test_who_leaves_while_it_reads_is_asked_nothing_for(bench: Bench) -> None:
    bench.subscribe(1, 80)
    bench.answer(only(bench.fetches()), 90)
    bench.tell(events.ClientLost(1))
    bench.tell(events.Flushed(1))
    assert bench.fetches() == []


def test_a_head_that_nobody_has_heard_of_is_asked_when_it_has_answered(bench: Bench) -> None:
    bench.subscribe(1, 100, far=80)
    first = only(bench.fetches())
    assert first.cursors == {"h": {"h.1": 100}}
    bench.answer(first, 100)
    bench.answer(first, 90, last=90, head="far")
    ((to, fetch),) = bench.fetches()
    assert (to, fetch.cursors, fetch.settled) == (HEADS, {"far": {"far.1": 80}}, ["h"])
    assert bench.told(1) == [Began("h", 100, "h.1", "h.1", PRESENT)]
    bench.answer(fetch, 90, last=90, head="far")
    assert bench.had(1) == list(range(81, 91))
    bench.subscribe(2, 100, far=85)
    assert only(bench.fetches()).cursors == {"h": {"h.1": 100}, "far": {"far.1": 85}}


def test_what_many_make_up_is_never_asked_for(bench: Bench) -> None:
    for client in range(1, 41):
        bench.subscribe(client, 100, f"n > {client}", **{f"none{client}.{each}": 7 for each in range(200)})
    while fetches := bench.fetches():
        for _, fetch in fetches:
            assert fetch.cursors == {"h": {"h.1": 100}}
            bench.answer(fetch, 100)
    asked = [bench.again() for _ in range(LIMITS.refetches + 3)]
    assert [len(fetches) for fetches in asked] == [1] * LIMITS.refetches + [0] * 3
    assert all(not fetch.cursors for fetches in asked for _, fetch in fetches)
    assert all(len(msgspec.json.encode(fetch)) < 1000 for fetches in asked for _, fetch in fetches)


def test_a_head_that_was_away_for_long_serves_whoever_waits_for_it(bench: Bench) -> None:
    bench.subscribe(1, 80)
    bench.fetches()
    for _ in range(LIMITS.refetches):
        assert only(bench.again()).cursors == {"h": {"h.1": 80}}
    assert bench.again() == []
    bench.hear(Restored())
    bench.answer(only(bench.fetches()), 100)
    assert bench.had(1) == list(range(81, 101))
    bench.hear(Interrupted(["h"]))
    bench.fetches()
    assert only(bench.again()).cursors == {"h": {"h.1": 100}}


def test_no_fetch_is_larger_than_it_may_be(bench: Bench) -> None:
    for client in range(1, 201):
        bench.subscribe(client, 80, f"n > 0 and `{client}{'x' * 100}` = '{'y' * 1000}'")
    bench.fetches()
    bench.hear(Restored())
    fetches = [fetch for _, fetch in bench.fetches()]
    assert sum(len(fetch.filters) for fetch in fetches) == 200
    assert max(len(msgspec.json.encode(fetch)) for fetch in fetches) < LIMITS.ask_bytes + 10_000
    assert len(fetches) == 4
    for fetch in fetches:
        bench.answer(fetch, 100, oldest=91)
    assert all(bench.told(client)[0] == Began("h", 80, "h.1", "h.1", PRESENT) for client in range(1, 201))


def test_no_fetch_has_more_alternatives_than_a_head_looks_for_in_short_time(bench: Bench) -> None:
    for client in range(1, 101):
        bench.subscribe(client, 80, "n > 0 and " + " and ".join(f"a{each} != {client}" for each in range(6)))
    bench.fetches()
    bench.hear(Restored())
    fetches = [fetch for _, fetch in bench.fetches()]
    assert sum(len(fetch.filters) for fetch in fetches) == 100
    assert max(len(fetch.filters) for fetch in fetches) * 64 * 100 < LIMITS.ask_bytes


def test_what_comes_late_of_a_log_that_is_lost_is_nothing_of_the_next_one(bench: Bench) -> None:
    """Publications of before may wait on a link in the middle, where what is asked and answered overtakes them."""
    bench.subscribe(1, 0)
    bench.answer(only(bench.fetches()), upto=2, last=2)
    bench.actions.clear()
    bench.hear(Routed("h", 90, "p", 90, {"n": 90.0}, "h.0"))
    bench.hear(Mark("h", 91, "h.0"))
    bench.hear(Routed("h", 3, "p", 3, {"n": 3.0}, "h.1"))
    assert [action.note.offset for action in bench.actions if isinstance(action, SendNote)] == [3]


def test_who_subscribes_again_and_again_is_asked_for_once_it_has_read_what_came(bench: Bench) -> None:
    bench.subscribe(1, 0)
    first = only(bench.fetches())
    for offset in range(30):
        bench.subscribe(1, offset, "n > 0" if offset % 2 else "n > 1")
    assert bench.fetches() == []
    assert bench.awaited() == [1]
    bench.answer(first, 10)
    assert (bench.had(1), bench.fetches()) == (list(range(1, 11)), [])
    bench.tell(events.Flushed(1))
    # Of all that it has said meanwhile the last counts.
    assert only(bench.fetches()).cursors == {"h": {"h.1": 29}}


def test_who_subscribes_again_is_served_until_then_and_misses_nothing(bench: Bench) -> None:
    bench.subscribe(1, 90)
    bench.answer(only(bench.fetches()), 100)
    bench.subscribe(1, 95)
    bench.live(101)
    bench.tell(events.Flushed(1))
    bench.live(102)
    bench.answer(only(bench.fetches()), 102, last=102)
    bench.live(103)
    assert bench.had(1) == [*range(91, 102), *range(96, 104)]


@pytest.mark.parametrize("gone", [events.ClientSaid(1, Unsubscribe()), events.ClientLost(1)])
def test_who_has_said_it_again_and_leaves_is_asked_nothing_for(bench: Bench, gone: events.Event) -> None:
    bench.subscribe(1, 90)
    bench.answer(only(bench.fetches()), 100)
    bench.subscribe(1, 95)
    bench.tell(gone)
    bench.tell(events.Flushed(1))
    assert bench.fetches() == []


def test_who_leaves_and_comes_back_on_its_connection_waits_for_what_was_asked_for_it(bench: Bench) -> None:
    bench.subscribe(1, 0)
    first = only(bench.fetches())
    for _ in range(10):
        bench.tell(events.ClientSaid(1, Unsubscribe()))
        bench.subscribe(1, 0)
    bench.tell(events.Flushed(1))
    assert bench.fetches() == []
    bench.answer(first, 10)
    assert only(bench.fetches()).cursors == {"h": {"h.1": 0}}


def test_only_so_much_is_on_its_way_however_many_come(bench: Bench) -> None:
    for client in range(1, 101):
        bench.subscribe(client, 0, f"n > {client % 7}")
    under_way = [fetch for _, fetch in bench.fetches()]
    assert len(under_way) == LIMITS.fetches
    bench.answer(under_way.pop(), 10)
    # All who have waited are asked for at once.
    (rest,) = [fetch for to, fetch in bench.fetches() if to == HEADS]
    assert rest.cursors == {"h": {"h.1": 0}}
    for fetch in (*under_way, rest):
        bench.answer(fetch, 100)
    assert all(bench.had(client)[-1] == 100 for client in range(9, 101))


def test_whoever_has_waited_longest_is_asked_for_first(bench: Bench) -> None:
    bench.subscribe(1, 50)
    bench.answer(only(bench.fetches()), 60)
    for client in range(2, 2 + LIMITS.fetches):
        bench.subscribe(client, 0)
    under_way = [fetch for _, fetch in bench.fetches()]
    bench.tell(events.Flushed(1))
    assert bench.fetches() == []
    for client in range(20, 60):
        bench.subscribe(client, 0)
    bench.answer(under_way[0], 10)
    assert only(bench.fetches()).cursors == {"h": {"h.1": 60}}
    bench.answer(under_way[1], 10)
    assert only(bench.fetches()).cursors == {"h": {"h.1": 0}}


def test_nobody_waits_for_a_head_that_is_stuck_for_longer_than_it_may(bench: Bench) -> None:
    for client in range(1, 2 * LIMITS.fetches):
        bench.subscribe(client, 80)
    assert len(bench.fetches()) == LIMITS.fetches
    bench.now = LIMITS.answer_seconds
    bench.tell(events.Tick())
    fetch = only(bench.fetches())
    bench.answer(fetch, 100)
    assert bench.had(2 * LIMITS.fetches - 1) == list(range(81, 101))


def test_a_head_that_answers_no_more_is_not_waited_for(bench: Bench) -> None:
    bench.subscribe(1, 100)
    first = only(bench.fetches())
    for head in ("h", "far"):
        bench.answer(first, 100, head=head)
    bench.subscribe(2, 90)
    both = only(bench.fetches())
    bench.answer(both, 100)
    bench.subscribe(2, 95)
    bench.tell(events.Flushed(2))
    assert bench.fetches() == []
    bench.hear(Interrupted(["far"]))
    for _, fetch in bench.fetches():
        bench.answer(fetch, 100)
    assert bench.had(2)[-5:] == list(range(96, 101))
