"""Subscriptions that are given up by one call and meant by another, or held from before this program started."""

from __future__ import annotations

from itertools import count

from tocsin.client.core.actions import Confirmed, Ended, Resumed, Unsubscribed
from tocsin.client.core.events import Subscribe
from tocsin.client.core.inbox import Inbox
from tocsin.client.core.subscriptions import WantedSubscriptions
from tocsin.client.rules import Rules
from tocsin.model.subscriber import Held, Unsubscribe


def test_one_that_is_given_up_before_it_was_asked_for_is_given_up_all_the_same() -> None:
    rules = Rules(window=1)
    subscriptions = WantedSubscriptions(rules, Inbox(rules), count(1))
    held = Held(6, "d", {"v": 2}, 0)
    assert subscriptions.welcomed([held]) == [Resumed(held)]
    subscriptions.subscribe(Subscribe(1, "c"))
    subscriptions.subscribe(Subscribe(2, "d", {"v": 2}))
    [first] = subscriptions.due(0.0)
    assert subscriptions.unsubscribe(2) == []
    subscriptions.subscribed(first.id, Held(5, "c", {}, 0))
    [second] = subscriptions.due(0.0)
    assert subscriptions.subscribed(second.id, held) == [Ended(6)]
    [last] = subscriptions.due(0.0)
    assert isinstance(last, Unsubscribe)
    assert last.subscription == 6
    assert subscriptions.unsubscribed(last.id) == [Unsubscribed(2)]


def test_one_that_is_given_up_while_it_is_asked_for_once_more_is_asked_for_again() -> None:
    subscriptions = WantedSubscriptions(Rules(), Inbox(Rules()), count(1))
    held = Held(7, "d", {"v": 3}, 0)
    subscriptions.subscribe(Subscribe(1, "d", {"v": 3}))
    [first] = subscriptions.due(0.0)
    assert subscriptions.subscribed(first.id, held) == [Confirmed(1, held)]
    subscriptions.subscribe(Subscribe(2, "d", {"v": 3}))
    subscriptions.unsubscribe(1)
    [second, leave] = subscriptions.due(0.0)
    assert subscriptions.subscribed(second.id, held) == []
    assert subscriptions.unsubscribed(leave.id) == [Unsubscribed(1)]
    [again] = subscriptions.due(0.0)
    assert subscriptions.subscribed(again.id, held) == [Confirmed(2, held)]
