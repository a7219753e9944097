from __future__ import annotations

import httpx
import msgspec
import pytest

from tests.data.server.memory import MemoryCluster, MemoryTokens
from tocsin.data.server.access import Access
from tocsin.data.server.app import create_app
from tocsin.data.server.call import Operation
from tocsin.data.server.operations import OPERATIONS
from tocsin.errors import SettingsError
from tocsin.http.listening import is_loopback
from tocsin.model.messages import SHARES
from tocsin.settings import Settings

MAY: dict[Access, set[str | None]] = {
    Access.OPEN: {None, "admin", "publisher", "broker", "node"},
    Access.ANY: {"admin", "publisher", "broker", "node"},
    Access.PUBLISHER: {"admin", "publisher", "broker"},
    Access.BROKER: {"admin", "broker"},
    Access.ADMIN: {"admin"},
}


async def call(client: httpx.AsyncClient, operation: Operation, token: str | None) -> httpx.Response:
    client.headers.pop("Authorization", None)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    content = operation.body.example if operation.body else None
    if token == "broker" and operation.access is Access.PUBLISHER:
        headers["Content-Type"], content = SHARES, '[{"subscriber": "ann", "records": [{}]}]'
    return await client.request(
        operation.method, operation.path.replace("{name}", "thing"), headers=headers, content=content
    )


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
@pytest.mark.parametrize("role", [None, "admin", "publisher", "broker", "node"])
async def test_a_call_can_be_made_by_those_roles_only_that_it_names(
    client: httpx.AsyncClient, operation: Operation, role: str | None
) -> None:
    answer = await call(client, operation, role)
    if role in MAY[operation.access]:
        assert answer.status_code not in (401, 403, 500)
    elif role is None:
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    else:
        assert answer.status_code == 403
        assert f"the role {operation.access}" in answer.json()["error"]["message"]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_an_unknown_token_is_no_token_even_where_none_is_needed(
    client: httpx.AsyncClient, operation: Operation
) -> None:
    answer = await call(client, operation, "guess")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("header", ["admin", "Basic admin", "Bearer", "Bearer admin admin", "Bearer \xff"])
async def test_a_header_that_is_no_bearer_token_is_refused(client: httpx.AsyncClient, header: str) -> None:
    answer = await client.get("/datasets", headers={b"Authorization": header.encode("latin-1")})
    assert answer.status_code == 401


async def test_the_demo_token_is_accepted_only_when_asked_for(cluster: MemoryCluster, settings: Settings) -> None:
    for demo_token, status in ((None, 401), ("demo", 200)):
        transport = httpx.ASGITransport(app=create_app(cluster, MemoryTokens(), settings, demo_token))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answer = await client.get("/datasets", headers={"Authorization": "Bearer demo"})
            assert answer.status_code == status


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.org"])
def test_the_demo_token_is_refused_where_other_machines_could_use_it(
    cluster: MemoryCluster, settings: Settings, host: str
) -> None:
    open_to_others = msgspec.structs.replace(settings, data=msgspec.structs.replace(settings.data, host=host))
    with pytest.raises(SettingsError, match="can be reached from other machines"):
        create_app(cluster, MemoryTokens(), open_to_others, "demo")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_is_told_by_address_or_name(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/brokers", {"name": "south", "url": "ws://south"}),
        ("/subscriptions", {"broker": "south", "channel": "Of", "parameters": []}),
        ("/subscriptions/detach", {"broker": "south", "ids": []}),
    ],
)
async def test_a_broker_acts_for_no_other_broker(client: httpx.AsyncClient, path: str, body: dict[str, object]) -> None:
    refused = await client.post(path, json=body, headers={"Authorization": "Bearer broker-north"})
    assert refused.status_code == 403
    assert "this is the token of broker north, and south needs its own" in refused.json()["error"]["message"]
    for token in ("broker-south", "admin"):
        allowed = await client.post(path, json=body, headers={"Authorization": f"Bearer {token}"})
        assert allowed.status_code != 403


@pytest.mark.parametrize("token", ["publisher", "broker"])
async def test_what_people_subscribed_to_is_listed_for_admins_alone(client: httpx.AsyncClient, token: str) -> None:
    assert (await client.get("/subscriptions")).status_code == 200
    assert (await client.get("/subscriptions", headers={"Authorization": f"Bearer {token}"})).status_code == 403


async def test_a_broker_publishes_in_the_names_of_subscribers_alone(client: httpx.AsyncClient) -> None:
    refused = await client.post("/feeds/f", json={"id": "1"}, headers={"Authorization": "Bearer broker"})
    assert refused.status_code == 403
    assert SHARES in refused.json()["error"]["message"]
