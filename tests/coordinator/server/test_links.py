"""Brokers' links: who may open one, and what comes of odd words on it."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus

from tests.coordinator.server.live import Wire, wire
from tests.coordinator.server.running import Running, running, settings
from tests.waiting import until_async
from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.server import links
from tocsin.http.listening import STOP_SECONDS
from tocsin.model.coordination import Accepted, Beat, Hello, Load, Refused, Release, StayId
from tocsin.model.subscriber import Code


@pytest.fixture
async def coordinator(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(settings(tmp_path)) as started:
        yield started


@pytest.fixture
async def link(coordinator: Running) -> AsyncIterator[Wire]:
    """A link of the broker north, on which nothing was said yet."""
    async with wire(coordinator, coordinator.token("north", "broker")) as opened:
        yield opened


async def _greet(link: Wire, name: str = "north") -> None:
    await link.say(Hello(name, f"ws://{name}"))
    assert isinstance(await link.hear(), Accepted)


async def _serves_on(coordinator: Running) -> None:
    async with wire(coordinator, coordinator.token("south", "broker")) as another:
        await _greet(another, "south")


@pytest.mark.parametrize(("role", "status"), [("subscriber", 403), ("operator", 403), (None, 401)])
async def test_a_link_needs_a_brokers_token(coordinator: Running, role: str | None, status: int) -> None:
    token = coordinator.token("north", role) if role else "nonsense"  # type: ignore[arg-type]
    with pytest.raises(InvalidStatus) as refused:
        async with wire(coordinator, token):
            pass
    assert refused.value.response.status_code == status


async def test_a_broker_is_told_the_key_and_serves(coordinator: Running, link: Wire) -> None:
    await link.say(Hello("north", "ws://north"))
    assert await link.hear() == Accepted(Keyring((coordinator.key,)).trust)
    (north,) = (await coordinator.status())["brokers"]
    assert (north["name"], north["state"]) == ("north", "serving")


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "{",
        "null",
        '{"type": "nonsense"}',
        '{"type": "hello"}',
        '{"type": "hello", "broker": "north", "url": "ws://north", "serving": [["ann", -1]]}',
        '{"type": "hello", "broker": "north", "url": "ws://north", "serving": [["two words", 1]]}',
        '{"type": "hello", "broker": "north", "url": "ws://north\\u0000"}',
        '{"type": "hello", "broker": "north", "url": "ws://north", "capacity": 0}',
        '{"type": "hello", "broker": "north", "url": "ws://north", "place": [1e999, 0]}',
        '{"type": "progress", "cursors": {"ann": {"7": 9223372036854775808}}}',
    ],
)
@pytest.mark.parametrize("greeted", [False, True])
async def test_garbage_is_refused_and_the_link_closed(
    coordinator: Running, link: Wire, garbage: str, greeted: bool
) -> None:
    if greeted:
        await _greet(link)
    await link.say(garbage)
    refused = await link.hear()
    assert isinstance(refused, Refused)
    assert refused.code == "invalid"
    assert refused.message
    assert await link.closed() == Code.UNREADABLE
    await _serves_on(coordinator)


@pytest.mark.parametrize("early", [Beat(), Load(1.0, 2.0)])
async def test_the_first_message_must_be_hello(coordinator: Running, link: Wire, early: Beat | Load) -> None:
    await link.say(early)
    refused = await link.hear()
    assert isinstance(refused, Refused)
    assert "hello" in refused.message
    assert await link.closed() == Code.UNREADABLE
    await _serves_on(coordinator)


async def test_binary_messages_are_not_spoken(coordinator: Running, link: Wire) -> None:
    await link.say(b"\x00\x01")
    assert await link.closed() == 1003
    await _serves_on(coordinator)


async def test_a_broker_cannot_speak_for_another_and_the_log_names_both(
    coordinator: Running, link: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    await link.say(Hello("south", "ws://south"))
    refused = await link.hear()
    assert isinstance(refused, Refused)
    assert (refused.code, await link.closed()) == ("forbidden", 4403)
    assert "'south' came with the token of north" in refused.message
    assert (await coordinator.status())["brokers"] == []
    assert _warned(caplog) == ["a broker is refused"]


async def test_a_refused_handshake_is_logged_by_name_and_only_once(
    coordinator: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidStatus):
        async with wire(coordinator, coordinator.token("north", "broker", expires=1.0)):
            pass
    assert _warned(caplog) == ["a broker is refused"]
    assert "the token of north is no longer valid" in str(caplog.records[-1].fields)  # type: ignore[attr-defined]


def _warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


async def test_the_newer_of_two_links_counts(coordinator: Running, link: Wire) -> None:
    await _greet(link)
    async with wire(coordinator, coordinator.token("north", "broker")) as second:
        await _greet(second)
        await link.closed()
        (north,) = (await coordinator.status())["brokers"]
        assert north["state"] == "serving"


async def test_hello_twice_on_one_link_is_as_once(coordinator: Running, link: Wire) -> None:
    await _greet(link)
    await _greet(link)
    assert len((await coordinator.status())["brokers"]) == 1


async def test_what_a_broker_has_of_nobody_it_is_told_to_release(coordinator: Running, link: Wire) -> None:
    await link.say(Hello("north", "ws://north", prepared=[StayId("ann", 3)]))
    assert isinstance(await link.hear(), Accepted)
    assert await link.hear() == Release("ann", 3)


async def test_a_silent_broker_is_dead_and_one_that_beats_is_not(tmp_path: Path) -> None:
    its = settings(tmp_path, silence_seconds=0.6)
    async with running(its) as coordinator, wire(coordinator, coordinator.token("north", "broker")) as north:
        await _greet(north)
        async with wire(coordinator, coordinator.token("south", "broker")) as south:
            await _greet(south, "south")

            async def only_south() -> bool:
                await south.say(Beat())
                states = {broker["name"]: broker["state"] for broker in (await coordinator.status())["brokers"]}
                assert states["south"] != "dead"
                return bool(states["north"] == "dead")

            await until_async(only_south, "death")
            await north.closed()


async def test_a_link_without_hello_is_closed(coordinator: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "HELLO_SECONDS", 0.1)
    async with wire(coordinator, coordinator.token("north", "broker")) as late:
        assert await late.closed() == Code.LATE


@pytest.mark.slow
async def test_a_broker_that_does_not_read_is_cut_off_and_others_are_served(tmp_path: Path) -> None:
    its = settings(tmp_path, link_bytes=1024, silence_seconds=1_000)
    async with running(its) as coordinator, _deaf(coordinator) as deaf:

        async def away() -> bool:
            return [broker["state"] for broker in (await coordinator.status())["brokers"]] != ["serving"]

        await until_async(away, "cut")
        await _serves_on(coordinator)
        deaf.connection.transport.resume_reading()
        await deaf.closed()


async def test_a_stop_does_not_wait_for_a_broker_that_does_not_read(tmp_path: Path) -> None:
    async with running(settings(tmp_path, silence_seconds=1_000)) as coordinator, _deaf(coordinator):
        signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_SECONDS):
            await coordinator.task


@asynccontextmanager
async def _deaf(coordinator: Running) -> AsyncIterator[Wire]:
    """A link on which more was said than its socket takes, and nothing is read."""
    with socket.socket() as small:
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        small.setblocking(False)
        url = urlsplit(coordinator.url)
        await asyncio.get_running_loop().sock_connect(small, (url.hostname, url.port))
        async with wire(coordinator, coordinator.token("north", "broker"), sock=small, close_timeout=0.1) as deaf:
            await _greet(deaf)
            deaf.connection.transport.pause_reading()
            unknown = [StayId(f"subscriber-{number}", 1) for number in range(30_000)]
            await deaf.say(Hello("north", "ws://north", prepared=unknown))
            yield deaf
            deaf.connection.transport.abort()


async def test_reports_reach_the_status(coordinator: Running, link: Wire) -> None:
    await _greet(link)
    await link.say(Load(10.0, 20.0))

    async def reported() -> bool:
        (north,) = (await coordinator.status())["brokers"]
        return bool((north["incoming"], north["outgoing"]) == (10.0, 20.0))

    await until_async(reported, "report")
