"""However many connections somebody has, others have their share of an edge."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.overlay.server.running import Talk, edge, head, talk
from tests.overlay.server.test_access import KEYS, token
from tests.waiting import SECONDS
from tocsin.overlay.client import connect
from tocsin.overlay.dialogue import Began, Note, Subscribe
from tocsin.overlay.server import sharing
from tocsin.overlay.server.sharing import Bearers, FairOutput, OutputWindow, TimeShare, water_level
from tocsin.settings.overlay import OverlaySettings

MOST = 1000.0
DEMANDS = st.lists(st.floats(0, 2000), min_size=1, max_size=8)


@settings(max_examples=examples(100), deadline=None)
@given(DEMANDS)
def test_nobody_gets_less_than_an_even_share_of_what_it_wants_and_nothing_is_left_over(demands: list[float]) -> None:
    level = water_level(demands, MOST)
    given_each = [min(level, demand) for demand in demands]
    assert sum(given_each) == pytest.approx(min(MOST, sum(demands)))
    assert all(got >= min(demand, MOST / len(demands)) - 1e-9 for got, demand in zip(given_each, demands, strict=True))


def send_for(window: OutputWindow, wanted: dict[str, int], size: int = 10) -> Counter[str]:
    """Everybody sends texts of one size as long as it may, in turn; how much, in one window."""
    sent, trying = Counter[str](), dict(wanted)
    while trying:
        for bearer in list(trying):
            if trying[bearer] and window.may_send(bearer, size):
                sent[bearer] += size
                trying[bearer] -= 1
            else:
                del trying[bearer]
    window.turn(
        {bearer: size * count - sent[bearer] for bearer, count in wanted.items() if size * count > sent[bearer]}
    )
    return sent


def test_who_sends_while_others_do_not_has_all_that_there_is() -> None:
    window = OutputWindow(MOST)
    for _ in range(3):
        assert send_for(window, {"mallory": 500}) == {"mallory": 1000}
    send_for(window, {"ann": 40, "bob": 50})
    for _ in range(3):
        assert send_for(window, {"ann": 40, "bob": 50}) == {"ann": 400, "bob": 500}


def test_who_wants_much_gets_what_others_leave() -> None:
    window = OutputWindow(MOST)
    wanted = {"ann": 10, "bob": 20, "mallory": 1000, "mike": 1000}
    send_for(window, wanted)
    for _ in range(5):
        assert send_for(window, wanted) == {"ann": 100, "bob": 200, "mallory": 350, "mike": 350}
    # The share of who wants no more is there for others.
    del wanted["mike"]
    send_for(window, wanted)
    assert send_for(window, wanted) == {"ann": 100, "bob": 200, "mallory": 700}


def test_a_text_of_any_size_is_sent_and_counts_for_as_long_as_it_takes() -> None:
    window = OutputWindow(MOST)
    send_for(window, {"ann": 200, "mallory": 200})
    assert window.may_send("mallory", 1600)
    assert not window.may_send("mallory", 1)
    for _ in range(2):
        assert window.may_send("ann", 400)
        window.turn({"mallory": 1.0, "ann": 1000.0})
        assert not window.may_send("mallory", 1000)


async def test_who_waits_for_its_turn_and_goes_keeps_nobody_waiting() -> None:
    bearers, sent = Bearers(OverlaySettings()), list[str]()
    for name in ("mallory", "ann"):
        bearers.open(name)
    output = FairOutput(10_000.0, bearers)

    async def send(text: str) -> None:
        sent.append(text)

    assert output.paced("", send) is send
    mallory, ann = output.paced("mallory", send), output.paced("ann", send)
    await asyncio.gather(*(mallory("m" * 100) for _ in range(100)), *(ann("a" * 100) for _ in range(2)))
    waiting = [asyncio.create_task(mallory("m" * 100)) for _ in range(100)]
    async with asyncio.timeout(SECONDS):
        await ann("a" * 100)
        for each in waiting[:90]:
            each.cancel()
        await asyncio.wait(waiting)
    assert not any(each.exception() for each in waiting if not each.cancelled())


async def test_bearers_have_budgets_of_their_own_and_others_none() -> None:
    bearers = Bearers(OverlaySettings(connections_each=1))
    assert bearers.open("") is None
    for _ in range(1000):
        await bearers.speak("", 0.0)
    for name in map(str, range(1000)):
        await bearers.speak(name, 0.0)
    async with asyncio.timeout(SECONDS):
        await bearers.speak("0", 0.0)


async def hear_notes(socket: Talk, most: int) -> None:
    """Until so many have come."""
    while most:
        most -= isinstance(await socket.hear(), Note)


async def test_who_is_alone_waits_for_nobody() -> None:
    bearers = Bearers(OverlaySettings())
    bearers.open("ann")
    output = FairOutput(1.0, bearers)
    async with asyncio.timeout(SECONDS):
        for _ in range(1000):
            await output.take("ann", 1000)


async def test_one_person_with_many_subscriptions_has_no_more_than_others_leave(tmp_path: Path) -> None:
    count, many, text, bandwidth = 40, 20, "x" * 900, 250_000.0
    async with (
        AsyncExitStack() as stack,
        head(tmp_path, public_keys=KEYS) as root,
        edge(root, public_keys=KEYS, bandwidth=bandwidth) as url,
        talk(url, token("ann")) as ann,
        connect(root, client_token=token("ticker")) as ticker,
    ):
        hers = [await stack.enter_async_context(talk(url, token("mallory"))) for _ in range(many)]
        for name, socket in {"ann": ann, **{f"mallory+{number}": each for number, each in enumerate(hers)}}.items():
            await socket.say(Subscribe(name, "text exists"))
            assert isinstance(await socket.hear(), Began)
        now = asyncio.get_running_loop().time
        began, reading = now(), asyncio.gather(*(hear_notes(socket, count) for socket in hers))
        for _ in range(count):
            await ticker.publish({"text": text})
        await hear_notes(ann, count)
        assert not reading.done()
        await reading
        # All that hers takes but for what there was of one window to begin with.
        assert now() - began > many * count * len(text) / bandwidth * 0.9


async def test_whoever_has_used_up_its_part_of_the_time_is_heard_later_and_keeps_nobody_else_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mallorys, hers = "n > 1", "n > 2"
    async with (
        head(tmp_path, public_keys=KEYS) as root,
        edge(root, public_keys=KEYS) as url,
        talk(url, token("mallory")) as mallory,
        talk(url, token("ann")) as ann,
        connect(root, client_token=token("ticker")) as ticker,
    ):
        # What she says takes an hour, by this clock.
        hours = count(0.0, 3600.0)
        monkeypatch.setattr(sharing, "thread_time", lambda: next(hours))
        await mallory.say(Subscribe("mallory", mallorys))
        assert isinstance(await mallory.hear(), Began)
        monkeypatch.undo()
        await mallory.say(Subscribe("mallory", hers))
        await ann.say(Subscribe("ann", hers))
        assert isinstance(await ann.hear(), Began)
        for n in (2, 3):
            await ticker.publish({"n": n})
        note = await ann.hear()
        assert isinstance(note, Note)
        assert note.content == {"n": 3}
        told = [await mallory.hear() for _ in range(2)]
        assert [each.content for each in told if isinstance(each, Note)] == [{"n": 2}, {"n": 3}]


async def take_turn(share: TimeShare) -> None:
    async with share.turn():
        pass


async def test_what_clients_say_who_cannot_be_told_from_each_other_takes_a_part_of_the_time_together() -> None:
    bearers = Bearers(OverlaySettings())
    loop = asyncio.get_running_loop()
    ann, nobody = bearers.time_of("ann", loop.time()), bearers.time_of("", loop.time())
    assert nobody is bearers.time_of("", loop.time())
    with nobody.spend():
        pass
    async with nobody.turn():
        # Whoever comes meanwhile waits, on whatever connection, until this one's turn is over.
        other = asyncio.create_task(take_turn(nobody))
        async with ann.turn():
            assert not other.done()
    async with asyncio.timeout(SECONDS):
        await other
