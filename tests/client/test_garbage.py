"""A broker may send anything at any time: the core goes on."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.client.driving import Program, asked, every, held, notes, only, welcome
from tests.examples import examples
from tocsin.client.core.actions import Close, Deliver, Open
from tocsin.client.core.events import BrokerFound, Opened, Received, Subscribe, Unsubscribe
from tocsin.model.subscriber import Login, Request

numbers = st.integers(-5, 12) | st.integers(-(2**70), 2**70)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
helds = st.fixed_dictionaries(
    {"subscription": numbers, "channel": st.sampled_from(["Fires", "Floods"]), "parameters": st.just({})}
    | {"cursor": numbers},
)
notices = st.fixed_dictionaries({"s": numbers, "e": numbers, "payload": values})
# Messages with the right names and wild values, which come further than plain noise.
messages = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["welcome", "subscribed", "unsubscribed", "published", "notes", "moved", "slow", "error"]
        )
    },
    optional={
        "id": numbers,
        "subscriber": st.just("ann"),
        "broker": st.just("a"),
        "version": st.integers(0, 2),
        "subscriptions": st.lists(helds, max_size=3),
        "held": helds,
        "subscription": numbers,
        "accepted": numbers,
        "refused": st.lists(st.fixed_dictionaries({"index": numbers, "reason": st.just("no")}), max_size=2),
        "notes": st.lists(notices, max_size=4),
        "url": st.sampled_from(["ws://a", "ws://b", ""]),
        "waiting": numbers,
        "code": st.sampled_from(["busy", "not-found", ""]),
        "message": st.just("no"),
        "retry_after": st.none() | st.floats(0, 10),
    },
).map(lambda message: msgspec.json.encode(_encodable(message)))
noise = st.binary(max_size=30) | st.text(max_size=30) | values.map(lambda value: msgspec.json.encode(_encodable(value)))


def _encodable(value: Any) -> Any:
    """The same with numbers that JSON's encoder takes."""
    match value:
        case dict():
            return {key: _encodable(inner) for key, inner in value.items()}
        case list():
            return [_encodable(inner) for inner in value]
        case int() if not -(2**63) <= value < 2**64:
            return msgspec.Raw(str(value).encode())
    return value


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(messages | noise, max_size=15))
def test_whatever_is_received_the_core_goes_on(texts: list[str | bytes]) -> None:
    program = Program()
    program.do(Subscribe(1, "Fires"))
    program.serve(held(7))
    connection = 1
    for text in texts:
        actions = program.do(Received(connection, text))
        for action in actions:
            if isinstance(action, Open):
                connection = action.connection
                program.do(Opened(connection))
    program.do(Unsubscribe(1))
    wake = program.core.wake()
    assert wake is None or wake > program.now


@given(messages | noise)
def test_whatever_is_sent_upon_garbage_is_a_request(text: str | bytes) -> None:
    program = Program()
    program.serve(held(7))
    program.do(Received(1, text))
    for action in program.actions:
        if hasattr(action, "text"):
            msgspec.json.decode(action.text, type=Request)


def test_nesting_without_end_is_garbage() -> None:
    program = Program()
    program.serve(held(7))
    text = b'{"type":"notes","notes":' + b"[" * 100_000
    assert only(program.do(Received(1, text)), Close).connection == 1


def test_after_garbage_nothing_is_lost() -> None:
    program = Program()
    program.serve(held(7))
    program.say(1, notes(7, 1))
    program.do(Received(1, b"\xff"))
    opened = only(program.wait(), Open).connection
    assert asked(program.do(Opened(opened)), Login).cursors == {7: 0}
    program.say(opened, welcome(held(7)))
    assert [deliver.note.e for deliver in every(program.say(opened, notes(7, 1, 2)), Deliver)] == [2]


def test_what_comes_on_connections_that_are_not_there_is_ignored() -> None:
    program = Program()
    program.serve(held(7))
    assert program.do(Received(99, b"garbage")) == []
    assert program.do(Opened(99)) == []
    assert program.do(BrokerFound("ws://b")) == []
