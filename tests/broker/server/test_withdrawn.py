"""A token that is withdrawn, or whose key is, ends whatever was opened with it, within seconds and on real sockets."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
import pytest
from websockets.asyncio.client import connect

from tests.broker.server.world import SECONDS, World
from tests.coordinator.server.live import Wire
from tests.waiting import until_async
from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.tokens import Claims
from tocsin.model.coordination import Accepted, Hello

Change = Callable[[Keyring], Keyring]
CHANGES: dict[str, Change] = {
    "all tokens of the name": lambda ring: ring.without_name("ann"),
    "the key": lambda ring: ring.rotate(time.time(), time.time()),
}


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator sees sooner that somebody else has changed what it keeps."""
    monkeypatch.setattr("tocsin.coordinator.server.watch.LOOK_SECONDS", 0.1)


@pytest.mark.parametrize("what", CHANGES)
async def test_a_subscribers_session_ends_when_its_token_is_withdrawn(world: World, what: str) -> None:
    async with world.member("ann") as ann:
        world.store.amend(CHANGES[what])
        answers, code = await ann.end()
        assert ([answer["code"] for answer in answers], code) == (["unauthorized"], 4401)


async def test_only_the_token_that_is_withdrawn_ends(world: World) -> None:
    async with world.member("ann") as ann, world.member("bob") as bob:
        world.store.amend(lambda ring: ring.without_name("ann"))
        await ann.end()
        assert (await bob.ask(type="subscribe", id=1, channel="Of", parameters={"event": "e"}))["type"] == "subscribed"


async def test_sessions_go_on_under_the_old_key_while_a_new_one_signs(world: World) -> None:
    before = world.store.keyring().signing.id
    async with world.member("ann") as ann:
        world.store.amend(lambda ring: ring.rotate(time.time(), time.time() + 3600))

        async def signs_anew() -> bool:
            answer = await world.calls.post(f"{world.coordinator}/users", json={"name": "bob"})
            return before != msgspec.json.decode(_body(answer.json()["token"]), type=Claims).key

        await until_async(signs_anew, "the new key")
        async with world.member("bob") as bob:
            for client in (ann, bob):
                answer = await client.ask(type="subscribe", id=1, channel="Of", parameters={"event": "e"})
                assert answer["type"] == "subscribed"


async def test_a_session_ends_with_its_token(world: World) -> None:
    await world.token("ann")
    claims = Claims("ann", "subscriber", time.time() + 1.5)
    async with world.client() as client:
        token = world.store.keyring().signing.sign(claims)
        assert (await client.ask(type="login", token=token))["type"] == "welcome"
        [last], code = await client.end()
        assert (last["code"], code) == ("unauthorized", 4401)
        assert "the token of ann is no longer valid" in last["message"]


@pytest.mark.parametrize("what", ["withdrawn", "ended"])
async def test_a_brokers_link_ends_with_its_token(world: World, what: str) -> None:
    life = 3600 if what == "withdrawn" else 1.5
    claims = Claims("south", "broker", time.time() + life)
    headers = {"Authorization": f"Bearer {world.store.keyring().signing.sign(claims)}"}
    url = f"{world.coordinator.replace('http', 'ws', 1)}/link"
    async with connect(url, additional_headers=headers, proxy=None, open_timeout=SECONDS) as socket:
        link = Wire(socket)
        await link.say(Hello("south", "ws://south"))
        assert isinstance(await link.hear(), Accepted)
        if what == "withdrawn":
            world.store.amend(lambda ring: ring.without(claims.id))
        await socket.wait_closed()
        assert socket.close_code == 4401


def _body(token: str) -> bytes:
    from base64 import urlsafe_b64decode

    body = token.partition(".")[0]
    return urlsafe_b64decode(body + "=" * (-len(body) % 4))
