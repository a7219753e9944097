"""A node that is slow to read is told the newest of each channel, and everything else in its order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.data.sharing.memory import node_channel
from tocsin.data.sharing.outgoing import OutgoingMessages
from tocsin.data.sharing.wire import FeedChannel, FeedChannelEnded, FeedEnded, ForNode


def telling(tag: str, channel: str = "A", incarnation: str = "1.1", feed: str = "reports") -> FeedChannel:
    return FeedChannel(feed, incarnation, node_channel(channel, tag))


async def drained(outgoing: OutgoingMessages) -> list[ForNode]:
    return [await outgoing.take() for _ in range(len(outgoing))]


async def test_messages_come_out_as_they_went_in() -> None:
    outgoing = OutgoingMessages(10)
    messages: list[ForNode] = [FeedEnded("a"), telling("1"), FeedEnded("b"), FeedEnded("a")]
    assert all(outgoing.put(message) for message in messages)
    assert await drained(outgoing) == messages


async def test_of_what_is_told_of_a_channel_only_the_newest_waits() -> None:
    outgoing = OutgoingMessages(10)
    for number in range(10_000):
        assert outgoing.put(telling(str(number)))
    assert await drained(outgoing) == [telling("9999")]


async def test_channels_feeds_and_incarnations_are_told_apart() -> None:
    outgoing = OutgoingMessages(10)
    told = [telling("1"), telling("1", "B"), telling("1", incarnation="1.2"), telling("1", feed="others")]
    assert all(outgoing.put(message) for message in told)
    assert await drained(outgoing) == told


async def test_who_has_too_much_waiting_has_no_room() -> None:
    outgoing = OutgoingMessages(2)
    assert outgoing.put(FeedEnded("a"))
    assert outgoing.put(telling("1"))
    assert not outgoing.put(FeedEnded("b"))
    assert outgoing.put(telling("2"))
    assert await drained(outgoing) == [FeedEnded("a"), telling("2")]


STEPS = st.lists(st.tuples(st.sampled_from("AB"), st.booleans(), st.booleans()), max_size=20)


@given(STEPS)
async def test_whenever_a_node_reads_it_knows_the_same_in_the_end(steps: list[tuple[str, bool, bool]]) -> None:
    outgoing, heard, known = OutgoingMessages(100), dict[str, str](), dict[str, str]()
    for number, (channel, ends, reads) in enumerate(steps):
        if ends:
            known.pop(channel, None)
            outgoing.put(FeedChannelEnded("reports", "1.1", channel))
        else:
            known[channel] = str(number)
            outgoing.put(telling(str(number), channel))
        if reads:
            hear(heard, await outgoing.take())
    for message in await drained(outgoing):
        hear(heard, message)
    assert heard == known


def hear(heard: dict[str, str], message: ForNode) -> None:
    if isinstance(message, FeedChannel):
        heard[message.channel.name] = message.channel.tag
    elif isinstance(message, FeedChannelEnded):
        heard.pop(message.channel, None)
