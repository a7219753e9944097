"""Subscriptions from before this program started."""

from __future__ import annotations

from itertools import count

from tocsin.client.actions import Ended, Resumed, Unsubscribed
from tocsin.client.events import Subscribe
from tocsin.client.inbox import Inbox
from tocsin.client.rules import Rules
from tocsin.client.subscriptions import Subscriptions
from tocsin.model.subscriber import Held, Unsubscribe


def test_one_that_is_given_up_before_it_was_asked_for_is_given_up_all_the_same() -> None:
    rules = Rules(window=1)
    subscriptions = Subscriptions(rules, Inbox(rules), count(1))
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
