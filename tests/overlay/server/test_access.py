"""Who may come in: with a token that all share, or with signed ones, which say the name."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect as dial
from websockets.exceptions import InvalidStatus

from tests.overlay.server.running import edge, head, talk
from tests.waiting import until_async
from tocsin.coordinator.tokens import Claims, Role, SigningKey
from tocsin.errors import InvalidError, SettingsError, UnauthorizedError
from tocsin.overlay.client import connect
from tocsin.overlay.dialogue import Began, Introduce, Known, Refused, Subscribe
from tocsin.overlay.server.access import ClientIdentity, OverlayAccess, check_access
from tocsin.settings.overlay import OverlaySettings

KEY = SigningKey.new()
KEYS = [f"{KEY.id}:{KEY.public}"]


def token(name: str, role: Role = "subscriber", seconds: float = 600.0, key: SigningKey = KEY) -> str:
    return key.sign(Claims(name, role, time.time() + seconds))


def access(**settings: object) -> OverlayAccess:
    return OverlayAccess(OverlaySettings(**settings))  # type: ignore[arg-type]


def test_a_signed_token_says_who_it_is() -> None:
    identity = access(public_keys=KEYS).require_client(f"Bearer {token('ann')}")
    assert identity.name == "ann"
    for name in ("ann", "ann+1", "ann+phone+2"):
        identity.check(name)
    for name in ("bob", "anne", "ann.1", "ann/1", "an", "bob+ann"):
        with pytest.raises(InvalidError, match=r"the token is that of ann: the name is ann, or ann\+ANYTHING"):
            identity.check(name)


def test_without_keys_names_are_believed() -> None:
    for open_to in (access(), access(client_token="shared")):
        identity = open_to.require_client("Bearer shared")
        assert identity == ClientIdentity()
        identity.check("anybody")


@pytest.mark.parametrize(
    ("bearer", "reason"),
    [
        (None, "this needs a token that the coordinator has signed"),
        ("Bearer shared", "the token was not signed here"),
        (f"Bearer {token('ann', key=SigningKey.new())}", "was signed with a key that is not in use here"),
        (f"Bearer {token('ann', seconds=-1)}", "the token of ann is no longer valid"),
        (f"Bearer {token('ann')[:-4]}AAAA", "the token was not signed here"),
        (f"Basic {token('ann')}", "this needs a token that the coordinator has signed"),
    ],
    ids=["none", "a word", "another key", "too late", "altered", "another scheme"],
)
def test_what_was_not_signed_is_refused(bearer: str | None, reason: str) -> None:
    for call in (access(public_keys=KEYS).require_client, access(public_keys=KEYS).require_reader):
        with pytest.raises(UnauthorizedError, match=reason):
            call(bearer)


def test_a_key_of_the_same_id_does_not_sign_for_another() -> None:
    forged = SigningKey(KEY.id, SigningKey.new().secret)
    with pytest.raises(UnauthorizedError, match="the token was not signed here"):
        access(public_keys=KEYS).require_client(f"Bearer {token('ann', key=forged)}")


def test_one_of_several_keys_is_enough() -> None:
    other = SigningKey.new()
    both = access(public_keys=[*KEYS, f"{other.id}:{other.public}"])
    assert {both.require_client(f"Bearer {token('ann', key=key)}").name for key in (KEY, other)} == {"ann"}


def test_operators_may_look_and_brokers_may_do_both() -> None:
    signed = access(public_keys=KEYS, token="of-brokers")
    signed.require_reader(f"Bearer {token('olga', 'operator')}")
    with pytest.raises(Exception, match="this needs a subscriber's token, and that of olga is for the role operator"):
        signed.require_client(f"Bearer {token('olga', 'operator')}")
    signed.require_reader("Bearer of-brokers")
    assert signed.require_client("Bearer of-brokers") == ClientIdentity()


def test_both_kinds_of_tokens_at_once_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"overlay\.client_token and overlay\.public_keys are both set"):
        check_access(OverlaySettings(client_token="shared", public_keys=KEYS))


async def test_who_says_another_name_than_its_tokens_is_refused(tmp_path: Path) -> None:
    async with head(tmp_path, public_keys=KEYS) as root, edge(root, public_keys=KEYS) as url:
        for where, message in ((url, Subscribe("bob", "a = 1")), (root, Introduce("bob+1"))):
            async with talk(where, token("ann")) as ann:
                await ann.say(message)
                refused = await ann.hear()
                assert isinstance(refused, Refused)
                assert "the token is that of ann" in refused.message
                assert (await ann.closed())[0] == 4400
        async with talk(url, token("ann")) as ann, talk(root, token("bob")) as bob:
            await ann.say(Subscribe("ann", "a = 1"))
            assert isinstance(await ann.hear(), Began)
            await bob.say(Introduce("bob+ticker"))
            assert isinstance(await bob.hear(), Known)


async def test_a_connection_ends_with_its_token(tmp_path: Path) -> None:
    async with head(tmp_path, public_keys=KEYS) as root, talk(root, token("ann", seconds=0.5)) as ann:
        assert await ann.closed() == (4401, "the token of ann is no longer valid")


async def test_a_handshake_and_a_look_need_a_token(tmp_path: Path) -> None:
    async with head(tmp_path, public_keys=KEYS) as root, httpx.AsyncClient(trust_env=False, verify=False) as http:
        with pytest.raises(InvalidStatus) as refused:
            await dial(f"{root}/client", proxy=None)
        assert refused.value.response.status_code == 401
        status = f"{root.replace('ws', 'http')}/status"
        assert (await http.get(status)).status_code == 401
        operator = {"Authorization": f"Bearer {token('olga', 'operator')}"}
        assert (await http.get(status, headers=operator)).status_code == 200


async def test_the_library_takes_the_name_of_its_token(tmp_path: Path) -> None:
    async with head(tmp_path, public_keys=KEYS) as root, edge(root, public_keys=KEYS) as url:
        async with (
            connect(root, client_token=token("ticker")) as ticker,
            connect(url, client_token=token("ann")) as ann,
        ):
            assert (ticker.name.split("+")[0], ann.name.split("+")[0]) == ("ticker", "ann")
            subscription = await ann.subscribe("high > 1")
            await ticker.publish({"high": 2})
            assert (await anext(subscription)).publisher == ticker.name
        async with connect(url, client_token=token("ann"), name="bob") as ann:
            with pytest.raises(InvalidError, match="the token is that of ann"):
                await ann.subscribe("high > 1")
        async with connect(url, client_token=token("olga", "operator")) as olga:
            with pytest.raises(UnauthorizedError, match="this needs a subscriber's token"):
                await olga.subscribe("high > 1")


async def test_whoever_has_too_many_connections_gets_no_more_and_others_do(tmp_path: Path) -> None:
    async with (
        head(tmp_path, public_keys=KEYS) as root,
        edge(root, public_keys=KEYS, connections_each=2) as url,
        talk(url, token("ann")) as first,
    ):
        async with talk(url, token("ann")):
            with pytest.raises(InvalidStatus) as refused:
                await dial(f"{url}/client", additional_headers=_bearer("ann"), proxy=None)
            assert refused.value.response.status_code == 503
            assert b"ann has overlay.connections_each = 2 connections here" in refused.value.response.body
            async with talk(url, token("bob")) as bob:
                await bob.say(Subscribe("bob", "a = 1"))
                assert isinstance(await bob.hear(), Began)

        async def has_room() -> bool:
            try:
                async with talk(url, token("ann")):
                    return True
            except InvalidStatus:
                return False

        await until_async(has_room)
        await first.say(Subscribe("ann", "a = 1"))
        assert isinstance(await first.hear(), Began)


def _bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(name)}"}
