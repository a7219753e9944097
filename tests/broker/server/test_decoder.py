"""No bytes that come over a connection do more than close it."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.server.test_bad_input import frame, frames
from tests.broker.world import verify
from tests.examples import examples
from tocsin.broker import events
from tocsin.broker.core import BrokerCore
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.server.connection import SubscriberConnection
from tocsin.broker.server.connections import Connections
from tocsin.broker.server.driver import BrokerDriver
from tocsin.broker.server.entrance import Entrance
from tocsin.http.origins import Origins
from tocsin.model.coordination import Prepare
from tocsin.model.subscriber import Answer

HANDSHAKE = (
    b"GET /subscriber HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
LIMIT = 2000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["id", "token", "version", "cursors", "channel", "parameters", "live", "subscription", "feed"])
TYPES = st.sampled_from(["login", "subscribe", "unsubscribe", "ack", "publish", "logout", "nothing"])
MESSAGES = st.builds(lambda type_, rest: {**rest, "type": type_}, TYPES, st.dictionaries(FIELDS, JSON)).map(
    msgspec.json.encode
)
WHOLE = st.builds(frame, st.integers(0, 255), st.binary(max_size=200) | MESSAGES, mask=st.booleans())
GOOD = st.builds(lambda payload: frame(0x81, payload), MESSAGES)
LOGIN = st.just(frame(0x81, b'{"type": "login", "token": "token-ann"}'))
STREAMS = st.lists(LOGIN | GOOD | WHOLE | st.binary(max_size=50), max_size=8).map(b"".join)


class Transport(asyncio.Transport):
    """Remembers what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.ended = bytearray(), False

    def write(self, data: Any) -> None:
        assert not self.ended
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.ended = True

    def abort(self) -> None:
        self.ended = True


async def feed(stream: bytes, cuts: list[int]) -> tuple[Transport, Connections]:
    """What comes of a stream that arrives in pieces."""
    driver = BrokerDriver(BrokerCore("north", "ws://north", verify, limits=BrokerLimits(message_bytes=LIMIT)))
    entrance = Entrance(Origins("broker", [], demo=False), 10)
    entrance.open = True
    sessions = Connections(entrance, driver, message_bytes=LIMIT, waiting_bytes=100_000, burst=100)
    driver.start(sessions.get, {}, lambda _: None, lambda _: None)
    driver.feed(events.Told(Prepare("ann", 1, [])))
    connection, transport = SubscriberConnection(sessions), Transport()
    connection.connection_made(transport)
    connection.data_received(HANDSHAKE)
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    for start, end in pairwise(edges):
        connection.data_received(stream[start:end])
    connection.connection_lost(None)
    driver.stop()
    return transport, sessions


@settings(max_examples=examples(150))
@given(stream=STREAMS, cuts=st.lists(st.integers(0, 5000), max_size=5))
def test_any_bytes_are_answered_with_messages_of_the_protocol_and_at_most_one_close(
    stream: bytes, cuts: list[int]
) -> None:
    transport, sessions = asyncio.run(feed(stream, cuts))
    head, _, written = bytes(transport.written).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101")
    answers = frames(written)
    for opcode, payload in answers:
        assert opcode in (1, 8, 10)
        if opcode == 1:
            msgspec.json.decode(payload, type=Answer)
    closes = [place for place, (opcode, _) in enumerate(answers) if opcode == 8]
    assert closes in ([], [len(answers) - 1])
    assert len(sessions) == 0
    assert sum(sessions.closes.values()) == 1
