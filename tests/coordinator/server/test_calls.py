"""Every call over a real socket: with the right token and with wrong ones, with good bodies and with bad ones."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from tests.coordinator.server.live import wire
from tests.coordinator.server.running import Running, running, settings
from tests.waiting import until_async
from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.store.opening import open_store
from tocsin.coordinator.tokens import Verifier
from tocsin.errors import SettingsError
from tocsin.model.coordination import Accepted, Hello, Load

OPERATORS = [
    ("POST", "/users", {"name": "ann"}, 201),
    ("POST", "/brokers", {"name": "north", "url": "ws://north"}, 201),
    ("GET", "/status", None, 200),
    ("GET", "/plan", None, 200),
    ("POST", "/plan", None, 200),
    ("PUT", "/balancing", {"on": False}, 200),
]


@pytest.fixture
async def coordinator(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(settings(tmp_path)) as started:
        yield started


async def test_operators_may_make_their_calls_and_nobody_else(coordinator: Running) -> None:
    expired = coordinator.token("olga", "operator", expires=1.0)
    forged = coordinator.token("olga", "operator")[:-4] + "AAAA"
    for method, path, body, status in OPERATORS:
        assert (await coordinator.call(method, path, json=body)).status_code == status
        for token, refused, code in (
            (None, 401, "unauthorized"),
            ("nonsense", 401, "unauthorized"),
            ("demo", 401, "unauthorized"),
            (expired, 401, "unauthorized"),
            (forged, 401, "unauthorized"),
            (coordinator.token("ann", "subscriber"), 403, "forbidden"),
            (coordinator.token("north", "broker"), 403, "forbidden"),
        ):
            answer = await coordinator.call(method, path, token, json=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (refused, code), (method, path, token)


async def test_a_header_that_is_no_bearer_is_explained(coordinator: Running) -> None:
    answer = await coordinator.http.get(f"{coordinator.url}/status", auth=("olga", "secret"))
    assert answer.status_code == 401
    assert "Bearer TOKEN" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/users", b""),
        ("POST", "/users", b"{"),
        ("POST", "/users", b'{"name": 7}'),
        ("POST", "/users", b'{"name": "ann", "age": 7}'),
        ("POST", "/users", b'{"name": "two words"}'),
        ("POST", "/users", b'{"name": "ann\\n"}'),
        ("POST", "/users", b"\xff\xfe"),
        ("POST", "/brokers", b'{"name": "north"}'),
        ("POST", "/brokers", b'{"name": "north", "url": "nowhere"}'),
        ("POST", "/brokers", b'{"name": "north", "url": "ws://north", "capacity": 0}'),
        ("POST", "/brokers", b'{"name": "north", "url": "ws://north", "place": [1]}'),
        ("PUT", "/balancing", b'{"on": "yes"}'),
        ("PUT", "/brokers/north/draining", b"[]"),
    ],
)
async def test_a_bad_body_is_refused_with_the_reason(coordinator: Running, method: str, path: str, body: bytes) -> None:
    answer = await coordinator.call(method, path, content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")
    assert answer.json()["error"]["message"]


async def test_what_is_too_large_or_not_there_is_said_so(coordinator: Running) -> None:
    assert (await coordinator.call("POST", "/users", content=b"x" * 100_000)).status_code == 413
    assert (await coordinator.call("PUT", "/brokers/nowhere/draining", json={"on": True})).status_code == 404
    missing = await coordinator.call("GET", "/nothing")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not-found")
    wrong = await coordinator.call("DELETE", "/plan")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method-not-allowed")


async def test_anybody_may_ask_whether_it_is_there(coordinator: Running) -> None:
    answer = await coordinator.call("GET", "/health", None)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    told = await coordinator.call("GET", "/health", await coordinator.subscriber("ann"))
    assert told.json() == {"status": "ok"}
    assert (await coordinator.call("GET", "/health")).json() == {"status": "ok", "problems": []}


async def test_operators_are_told_which_broker_measures_what_was_not_planned(coordinator: Running) -> None:
    async with wire(coordinator, coordinator.token("north", "broker")) as link:
        await link.say(Hello("north", "ws://north"))
        await link.say(Load(1000.0, 1000.0, {}, 0.1))

        async def named() -> bool:
            await link.say(Load(1000.0, 1000.0, {}, 0.1))
            return bool((await coordinator.call("GET", "/health")).json()["problems"])

        await until_async(named)
        told = (await coordinator.call("GET", "/health")).json()
        assert told["status"] == "degraded"
        assert told["problems"] == (await coordinator.status())["problems"]
        assert told["problems"][0].startswith("broker north measures 2 kB/s where 0 B/s are planned")
        assert (await coordinator.call("GET", "/health", None)).json() == {"status": "degraded"}


async def test_a_registered_subscriber_gets_a_token_of_its_own(coordinator: Running) -> None:
    verifier = Verifier(Keyring((coordinator.key,)).trust)
    claims = verifier.verify(await coordinator.subscriber("ann"), 0)
    assert (claims.name, claims.role) == ("ann", "subscriber")


async def test_a_registered_broker_is_listed_and_its_token_opens_a_link(coordinator: Running) -> None:
    new = {"name": "north", "url": "ws://north", "capacity": 2.0, "place": [1.0, 2.0]}
    token = (await coordinator.call("POST", "/brokers", json=new)).json()["token"]
    assert [broker["state"] for broker in (await coordinator.status())["brokers"]] == ["away"]
    async with wire(coordinator, token) as link:
        await link.say(Hello("north", "ws://north"))
        assert isinstance(await link.hear(), Accepted)
        assert [broker["state"] for broker in (await coordinator.status())["brokers"]] == ["serving"]


async def test_without_a_broker_subscribers_are_told_to_come_again(coordinator: Running) -> None:
    answer = await coordinator.call("GET", "/broker", await coordinator.subscriber("ann"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert int(answer.headers["Retry-After"]) > 0


async def test_what_looks_like_a_token_and_is_nested_too_deeply_is_refused_and_ends_nothing(
    coordinator: Running,
) -> None:
    deep = urlsafe_b64encode(b'{"x":' + 2000 * b"[" + 2000 * b"]" + b"}").rstrip(b"=").decode()
    for path in ("/broker", "/status"):
        assert (await coordinator.call("GET", path, f"{deep}.AAAA")).status_code == 401
    assert (await coordinator.call("GET", "/health", None)).status_code == 200


async def test_only_subscribers_are_given_a_broker(coordinator: Running) -> None:
    assert (await coordinator.call("GET", "/broker", None)).status_code == 401
    assert (await coordinator.call("GET", "/broker")).status_code == 403


@pytest.mark.parametrize("query", ["x=1", "y=1", "x=1&y=north", "x=nan&y=1", "x=1&y=inf"])
async def test_half_a_place_is_none(coordinator: Running, query: str) -> None:
    answer = await coordinator.call("GET", f"/broker?{query}", await coordinator.subscriber("ann"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")


async def test_where_registration_is_open_anybody_may_take_a_free_name(tmp_path: Path) -> None:
    async with running(settings(tmp_path, registration="open")) as coordinator:
        first = await coordinator.call("POST", "/users", None, json={"name": "ann"})
        assert first.status_code == 201
        again = await coordinator.call("POST", "/users", None, json={"name": "ann"})
        assert (again.status_code, again.json()["error"]["code"]) == (409, "conflict")
        assert (await coordinator.call("POST", "/users", json={"name": "ann"})).status_code == 201, "by an operator"
        assert (await coordinator.call("POST", "/users", "nonsense", json={"name": "bob"})).status_code == 401


async def test_open_registration_has_a_quota_and_operators_have_none(tmp_path: Path) -> None:
    async with running(settings(tmp_path, registration="open", registrations_each=2)) as coordinator:
        for name, status in (("ann", 201), ("bob", 201), ("cat", 429)):
            answer = await coordinator.call("POST", "/users", None, json={"name": name})
            assert answer.status_code == status
        assert int(answer.headers["Retry-After"]) > 0
        assert (await coordinator.call("POST", "/users", json={"name": "cat"})).status_code == 201


async def test_open_registration_takes_no_name_that_was_signed_for(tmp_path: Path) -> None:
    its = settings(tmp_path, registration="open")
    async with running(its) as coordinator:
        with closing(open_store(its)) as program:
            program.amend(lambda keyring: keyring, "ann")
        answer = await coordinator.call("POST", "/users", None, json={"name": "ann"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")


async def test_what_is_withdrawn_in_the_store_opens_nothing_within_seconds(tmp_path: Path) -> None:
    its = settings(tmp_path)
    async with running(its) as coordinator:
        olga, otto = (coordinator.token(name, "operator") for name in ("olga", "otto"))
        assert (await coordinator.call("GET", "/status", olga)).status_code == 200
        with closing(open_store(its)) as program:
            program.amend(lambda keyring: keyring.without_name("olga"))

        async def is_refused() -> bool:
            return (await coordinator.call("GET", "/status", olga)).status_code == 401

        await until_async(is_refused, "refusal")
        assert (await coordinator.call("GET", "/status", otto)).status_code == 200


async def test_only_an_operator_gives_groups(tmp_path: Path) -> None:
    async with running(settings(tmp_path, registration="open")) as coordinator:
        wanted = {"name": "ann", "groups": ["police"]}
        assert (await coordinator.call("POST", "/users", None, json=wanted)).status_code == 403
        token = (await coordinator.call("POST", "/users", json=wanted)).json()["token"]
        verifier = Verifier(Keyring((coordinator.key,)).trust)
        assert verifier.verify(token, 0).groups == ("police",)


async def test_the_demo_token_is_an_operators_and_any_brokers(tmp_path: Path) -> None:
    async with running(settings(tmp_path), demo=True) as coordinator:
        assert (await coordinator.call("GET", "/status", "demo")).status_code == 200
        assert (await coordinator.call("GET", "/broker", "demo")).status_code == 401
        for name in ("north", "south"):
            async with wire(coordinator, "demo") as link:
                await link.say(Hello(name, f"ws://{name}"))
                assert isinstance(await link.hear(), Accepted)


async def test_the_demo_token_is_for_this_machine_only(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="known to everyone"):
        async with running(settings(tmp_path, host="0.0.0.0"), demo=True):
            pass


async def test_pages_of_other_sites_may_call_unless_they_know_the_token(tmp_path: Path) -> None:
    origin = {"Origin": "https://elsewhere.example.org"}
    async with running(settings(tmp_path / "one")) as coordinator:
        answer = await coordinator.http.get(f"{coordinator.url}/health", headers=origin)
        assert answer.headers["Access-Control-Allow-Origin"] == origin["Origin"]
    async with running(settings(tmp_path / "two"), demo=True) as coordinator:
        answer = await coordinator.http.get(f"{coordinator.url}/health", headers=origin)
        assert "Access-Control-Allow-Origin" not in answer.headers
        here = await coordinator.http.get(f"{coordinator.url}/health", headers={"Origin": "http://localhost:3000"})
        assert here.headers["Access-Control-Allow-Origin"] == "http://localhost:3000"


async def test_too_many_waiting_calls_are_refused(tmp_path: Path) -> None:
    async with running(settings(tmp_path, max_waiting=1)) as coordinator:
        north = coordinator.token("north", "broker")
        async with wire(coordinator, north) as link:
            await link.say(Hello("north", "ws://north"))
            await link.hear()
            waiting = asyncio.create_task(coordinator.call("GET", "/broker", coordinator.token("ann", "subscriber")))
            await link.hear()
            refused = await coordinator.call("GET", "/status")
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "busy")
            waiting.cancel()


async def test_an_answer_that_does_not_come_is_503_in_the_end(tmp_path: Path) -> None:
    its = settings(tmp_path, answer_seconds=0.3)
    async with running(its) as coordinator, wire(coordinator, coordinator.token("north", "broker")) as link:
        await link.say(Hello("north", "ws://north"))
        await link.hear()
        answer = await coordinator.call("GET", "/broker", coordinator.token("ann", "subscriber"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        assert "Retry-After" in answer.headers


async def test_the_javascript_client_is_served_to_anybody(coordinator: Running) -> None:
    answer = await coordinator.call("GET", "/tocsin.js", None)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert "connect" in answer.text


async def test_a_subscriber_removes_itself_and_nobody_else(coordinator: Running) -> None:
    ann, bob = await coordinator.subscriber("ann"), await coordinator.subscriber("bob")
    assert (await coordinator.call("DELETE", "/users/bob", ann)).status_code == 403
    assert (await coordinator.call("DELETE", "/users/me", coordinator.token("north", "broker"))).status_code == 403
    assert (await coordinator.call("DELETE", "/users/me", None)).status_code == 401
    for _ in range(2):
        assert (await coordinator.call("DELETE", "/users/me", ann)).json() == {}
    assert (await coordinator.call("DELETE", "/users/bob", bob)).status_code == 200
    assert (await coordinator.call("GET", "/broker", ann)).status_code == 401
    assert (await coordinator.status())["subscribers"] == 0


async def test_an_operator_removes_anybody_also_somebody_called_me(coordinator: Running) -> None:
    for name in ("ann", "me"):
        await coordinator.subscriber(name)
        assert (await coordinator.call("DELETE", f"/users/{name}")).status_code == 200
        missing = await coordinator.call("DELETE", f"/users/{name}")
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not-found")


async def test_a_removed_broker_is_cut_off_and_its_token_is_not_taken(coordinator: Running) -> None:
    token = (await coordinator.call("POST", "/brokers", json={"name": "north", "url": "ws://north"})).json()["token"]
    async with wire(coordinator, token) as link:
        await link.say(Hello("north", "ws://north"))
        assert isinstance(await link.hear(), Accepted)
        refused = await coordinator.call("DELETE", "/brokers/north")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")
        strangers = await coordinator.call("DELETE", "/brokers/north", coordinator.token("ann", "subscriber"))
        assert strangers.status_code == 403
        await coordinator.call("PUT", "/brokers/north/draining", json={"on": True})
        assert (await coordinator.call("DELETE", "/brokers/north")).status_code == 200
        assert await link.closed() == 4401
    assert (await coordinator.status())["brokers"] == []
    with pytest.raises(InvalidStatus):
        async with wire(coordinator, token):
            pass
    assert (await coordinator.call("DELETE", "/brokers/north")).status_code == 404
