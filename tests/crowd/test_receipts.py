"""Nothing lost, twice or out of order: what people received against what was found, also over logouts."""

from __future__ import annotations

from tocsin.crowd.messages import Compared, MissedNotes, merge_comparisons
from tocsin.crowd.receipts import Order, Receipts


def received(who: str, subscription: int, *executions: int, after: int = 0) -> Receipts:
    receipts = Receipts()
    receipts.hold(who, subscription, after)
    for execution in executions:
        receipts.add(who, subscription, execution)
    return receipts


EVERYBODY = {"p1": [7, 9], "p2": [7, 8]}


def test_everybody_is_to_get_what_was_found_for_their_subscriptions() -> None:
    receipts = received("p1", 7, 3, 5)
    receipts.hold("p2", 8, 0)
    assert receipts.compare({7: [3, 5], 9: [1]}, EVERYBODY) == Compared(2, 0, [], [7, 8])


def test_what_one_of_them_did_not_get_is_lost() -> None:
    receipts = received("p1", 7, 3, 5)
    receipts.hold("p2", 7, 0)
    receipts.add("p2", 7, 5)
    receipts.hold("p2", 8, 0)
    told = receipts.compare({7: [3, 5], 8: [1, 2]}, EVERYBODY)
    assert (told.expected, told.lost, told.delivered) == (6, 3, 3)
    assert told.missed == [MissedNotes("p2", 7, [3]), MissedNotes("p2", 8, [1, 2])]


def test_what_was_found_before_somebody_subscribed_is_not_owed() -> None:
    assert received("p1", 7, 6, after=5).compare({7: [2, 5, 6]}, EVERYBODY) == Compared(1, 0, [], [7])


def test_what_came_besides_is_not_asked_for() -> None:
    assert received("p1", 7, 1, 2, 3).compare({7: [3]}, EVERYBODY).delivered == 1


def test_within_a_visit_nothing_comes_twice_or_late() -> None:
    receipts = received("p1", 7, 3, 5)
    assert receipts.add("p1", 7, 5) is Order.TWICE
    assert receipts.add("p1", 7, 4) is Order.LATE
    assert receipts.add("p1", 7, 6) is Order.NEW


def test_after_a_logout_what_was_not_acknowledged_may_come_again_in_its_order() -> None:
    receipts = received("p1", 7, 3, 5)
    receipts.hold("p1", 7, 3)
    assert receipts.add("p1", 7, 5) is Order.AGAIN
    assert receipts.add("p1", 7, 5) is Order.TWICE
    assert receipts.add("p1", 7, 8) is Order.NEW
    assert receipts.compare({7: [3, 5, 8]}, EVERYBODY).lost == 0


def test_what_was_found_during_an_absence_is_owed() -> None:
    receipts = received("p1", 7, 3)
    receipts.hold("p1", 7, 3)
    receipts.add("p1", 7, 8)
    assert receipts.compare({7: [3, 5, 8]}, EVERYBODY).missed == [MissedNotes("p1", 7, [5])]


def test_of_a_subscription_that_is_given_up_nothing_more_is_owed_but_nothing_before_it_may_be_missing() -> None:
    receipts = received("p1", 7, 3, 8)
    receipts.give_up("p1", 7)
    assert receipts.compare({7: [3, 5, 8, 9]}, EVERYBODY).missed == [MissedNotes("p1", 7, [5])]
    unread = received("p1", 7, after=2)
    unread.give_up("p1", 7)
    assert unread.compare({7: [3]}, EVERYBODY).expected == 0


def test_a_subscription_that_got_another_number_is_known_by_it() -> None:
    receipts = received("p1", 7, 3)
    assert receipts.add("p1", 9, 4) is Order.NEW
    assert receipts.compare({9: [4, 5]}, EVERYBODY).missed == [MissedNotes("p1", 9, [5])]


def test_what_several_processes_miss_is_missed_by_all_of_them_together() -> None:
    one, other = (
        received("p1", 7, 3).compare({7: [3, 4]}, EVERYBODY),
        received("p2", 7, 3, 4).compare({7: [3, 4]}, EVERYBODY),
    )
    assert merge_comparisons([one, other, Compared()]) == Compared(4, 1, [MissedNotes("p1", 7, [4])], [7])


def test_whoever_is_not_there_in_the_end_is_not_owed_the_rest_yet() -> None:
    receipts = received("p1", 7, 3)
    assert receipts.compare({7: [3, 5]}, {"p1": [7]}).lost == 1
    assert receipts.compare({7: [3, 5]}, {"p1": [9]}) == Compared(0, 0, [], [7])
    assert receipts.compare({7: [3, 5]}, {}) == Compared(0, 0, [], [7], absent=1)
