from __future__ import annotations

import asyncio

from tocsin.overlay.server.outgoing import UNREAD, Ending, Outgoing, PendingBytes


async def flushed(outgoing: Outgoing) -> list[str]:
    sent: list[str] = []

    async def send(text: str) -> None:
        sent.append(text)

    await outgoing.flush(send)
    return sent


async def test_urgent_texts_overtake_and_others_keep_their_order() -> None:
    outgoing = Outgoing(100)
    for text, urgent in (("a", False), ("b", False), ("x", True), ("y", True)):
        outgoing.put(text, urgent)
    assert await flushed(outgoing) == ["x", "y", "a", "b"]
    assert outgoing.size == 0


async def test_who_does_not_read_is_cut_off_after_what_was_promised() -> None:
    outgoing = Outgoing(3)
    outgoing.put("of any size")
    outgoing.put("one too many")
    assert outgoing.ending == Ending(UNREAD, "what is sent is not read")
    await outgoing.ended()
    outgoing.put("too late")
    outgoing.end(1000, "the first reason counts")
    assert outgoing.ending.code == UNREAD
    assert await flushed(outgoing) == ["of any size"]


async def test_who_leaves_too_much_unread_on_all_its_connections_loses_those_that_have_most() -> None:
    pending = PendingBytes(10)
    many, few = Outgoing(100, pending), Outgoing(100, pending)
    pending.connections = 2
    many.put("eleven char")
    few.put("a")
    few.put("b")
    assert few.ending is None
    many.put("one too many")
    assert many.ending == Ending(UNREAD, "what is sent is not read")
    assert pending.size == 13
    assert await flushed(few) == ["a", "b"]
    many.closed()
    assert (pending.size, many.size) == (0, 0)


async def test_who_waits_for_room_is_told_once_when_there_is_some() -> None:
    outgoing, told = Outgoing(100), list[str]()
    outgoing.when_flushed(3, lambda: told.append("at once"))
    for text in ("four", "four", "four"):
        outgoing.put(text)
    outgoing.when_flushed(4, lambda: told.append("never"))
    outgoing.when_flushed(4, lambda: told.append(f"with {outgoing.size}"))
    assert told == ["at once"]
    await flushed(outgoing)
    assert told == ["at once", "with 4"]


async def test_a_text_whose_sending_is_cancelled_is_not_left_out() -> None:
    outgoing, stuck = Outgoing(100), asyncio.Event()

    async def send(text: str) -> None:
        stuck.set()
        await asyncio.Event().wait()

    outgoing.put("a")
    outgoing.put("b")
    sending = asyncio.create_task(outgoing.send_all(send))
    await stuck.wait()
    sending.cancel()
    await asyncio.wait([sending])
    assert await flushed(outgoing) == ["a", "b"]


async def test_what_comes_while_nothing_waits_is_sent() -> None:
    outgoing, sent = Outgoing(100), asyncio.Queue[str]()
    sending = asyncio.create_task(outgoing.send_all(sent.put))
    outgoing.put("a")
    assert await sent.get() == "a"
    outgoing.put("b")
    assert await sent.get() == "b"
    sending.cancel()
