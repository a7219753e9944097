"""Which messages overtake others."""

from __future__ import annotations

from typing import get_args

import pytest

from tocsin.overlay.actions import SendClient
from tocsin.overlay.dialogue import Began, Gap, Move, Note, Passed, Refused, Settle, ToSubscriber
from tocsin.overlay.post import Post

MESSAGES: list[tuple[ToSubscriber, bool]] = [
    (Began("h", 0, "h.1"), False),
    (Note("h", 1, "p", 1, {}), False),
    (Passed("h", 1), False),
    (Gap("h", 1, 2), False),
    (Refused("no"), False),
    (Move("ws://b", "s", 1), True),
    (Settle("s", 0.1), True),
]


def test_all_messages_to_subscribers_are_looked_at() -> None:
    assert {type(message) for message, _ in MESSAGES} == set(get_args(ToSubscriber))


@pytest.mark.parametrize(("message", "urgent"), MESSAGES)
def test_what_moves_a_subscriber_overtakes_everything_that_is_sent_to_it(message: ToSubscriber, urgent: bool) -> None:
    post = Post()
    post.reply(1, message)
    assert post.take() == [SendClient(1, message, urgent)]
