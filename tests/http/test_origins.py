"""Web pages of others, and the demo token that everybody knows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.broker.server.world import World
from tests.coordinator.server.running import running as running_coordinator
from tests.coordinator.server.running import settings as coordinator_settings
from tests.data.server.memory import MemoryCluster
from tests.data.server.running import running as running_data
from tocsin.errors import ForbiddenError
from tocsin.http.origins import Origins
from tocsin.settings import DataSettings, Settings

OURS = ["http://localhost", "http://127.0.0.1:5000", "https://[::1]:8443", "HTTP://LocalHost:80"]
OTHERS = [
    "https://evil.example",
    "null",
    "",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://localhost@evil.example",
    "http://0.0.0.0:8800",
    "http://10.0.0.1",
    "file://localhost",
    "http://[::1",
]
HERE = ["127.0.0.1:8800", "localhost:8800", "LOCALHOST", "[::1]:8800", "127.0.0.2"]
ELSEWHERE = [
    "evil.example:8800",
    "evil.example",
    "",
    "0.0.0.0:8800",
    "localhost.evil.example",
    "localhost@evil.example",
]


@pytest.mark.parametrize("origin", OURS)
def test_with_the_demo_token_pages_of_this_machine_may_call(origin: str) -> None:
    Origins("data", [], demo=True).check([origin], ["127.0.0.1:8800"])


@pytest.mark.parametrize("origin", OTHERS)
def test_with_the_demo_token_no_other_page_may(origin: str) -> None:
    with pytest.raises(ForbiddenError, match=r"data\.origins lists those that may"):
        Origins("data", [], demo=True).check([origin], ["127.0.0.1:8800"])
    with pytest.raises(ForbiddenError):
        Origins("data", [], demo=True).check([OURS[0], origin], ["127.0.0.1:8800"])


@pytest.mark.parametrize("host", HERE)
def test_with_the_demo_token_a_server_has_the_names_of_this_machine(host: str) -> None:
    Origins("data", [], demo=True).check([], [host])


@pytest.mark.parametrize("host", ELSEWHERE)
def test_with_the_demo_token_a_server_has_no_name_that_somebody_let_point_to_it(host: str) -> None:
    with pytest.raises(ForbiddenError, match="accepts the demo token"):
        Origins("data", [], demo=True).check([], [host])
    with pytest.raises(ForbiddenError):
        Origins("data", [], demo=True).check([], [HERE[0], host])


def test_with_the_demo_token_listed_pages_may_call_by_their_own_name() -> None:
    listed = Origins("data", ["https://Box.example/"], demo=True)
    listed.check(["https://box.example"], ["box.example"])
    with pytest.raises(ForbiddenError):
        listed.check(["https://other.example"], ["box.example"])


def test_without_the_demo_token_any_page_may_call_unless_some_are_listed() -> None:
    Origins("data", [], demo=False).check(["https://evil.example"], ["evil.example"])
    listed = Origins("data", ["https://here.example"], demo=False)
    listed.check(["https://HERE.example"], ["data.example"])
    with pytest.raises(ForbiddenError):
        listed.check(["https://evil.example"], ["data.example"])


@pytest.mark.parametrize("host", ["head.example.org", "10.0.0.5:8710", *HERE, *ELSEWHERE])
def test_without_a_token_programs_may_call_by_any_name(host: str) -> None:
    Origins("overlay", [], demo=False, open=True).check([], [host])


@pytest.mark.parametrize("origin", OTHERS)
def test_without_a_token_no_page_from_elsewhere_may_call_even_by_a_name_of_its_own(origin: str) -> None:
    anybodys = Origins("overlay", ["https://app.example"], demo=False, open=True)
    for host in ("127.0.0.1:8710", origin.partition("://")[2], "head.example.org"):
        with pytest.raises(ForbiddenError, match=r"where no token is asked for; overlay\.origins lists those that may"):
            anybodys.check([origin], [host])


def test_without_a_token_pages_of_this_machine_and_those_listed_may_call_by_any_name() -> None:
    anybodys = Origins("overlay", ["https://app.example"], demo=False, open=True)
    for origin in (*OURS, "https://APP.example"):
        anybodys.check([origin], ["edge.example.org:8711"])


def test_a_servers_own_page_may_call_it_whatever_is_listed() -> None:
    Origins("data", ["https://here.example"], demo=False).check(["https://data.example"], ["data.example"])


@asynccontextmanager
async def demo(place: str, directory: Path) -> AsyncIterator[str]:
    """A server that accepts the demo token."""
    if place == "data":
        async with running_data(MemoryCluster(), Settings(data=DataSettings(directory=directory, port=0)), "demo") as (
            url,
            _,
        ):
            yield url
    elif place == "coordinator":
        async with running_coordinator(coordinator_settings(directory), demo=True) as coordinator:
            yield coordinator.url
    else:
        async with World(directory) as world:
            yield world.broker


CALLS = {"data": "/datasets", "coordinator": "/status", "broker": "/status"}
SOCKETS = {"data": "/control?broker=north", "coordinator": "/link", "broker": "/subscriber"}


@pytest.mark.parametrize("place", CALLS)
async def test_a_page_from_elsewhere_cannot_use_the_demo_token(tmp_path: Path, place: str) -> None:
    headers = {"Authorization": "Bearer demo"}
    async with (
        demo(place, tmp_path) as url,
        httpx.AsyncClient(trust_env=False, verify=False, headers=headers) as client,
    ):
        assert (await client.get(url + CALLS[place])).status_code == 200
        assert (await client.get(url + CALLS[place], headers={"Origin": "http://localhost:3000"})).status_code == 200
        for odd in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            refused = await client.get(url + CALLS[place], headers=odd)
            assert refused.status_code == 403
            assert refused.json()["error"]["code"] == "forbidden"


@pytest.mark.parametrize("place", SOCKETS)
async def test_a_page_from_elsewhere_cannot_open_a_websocket_where_the_demo_token_is_accepted(
    tmp_path: Path, place: str
) -> None:
    async with demo(place, tmp_path) as url:
        for odd in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
            with pytest.raises(InvalidStatus) as refused:
                await connect(url.replace("http", "ws", 1) + SOCKETS[place], additional_headers=odd, proxy=None)
            assert refused.value.response.status_code == 403


async def test_a_page_that_let_its_name_point_to_this_machine_cannot_open_a_control_socket(tmp_path: Path) -> None:
    async with demo("data", tmp_path) as url:
        port = httpx.URL(url).port
        with pytest.raises(InvalidStatus) as refused:
            # The name in the URL is what a browser would say; the connection leads to this machine all the same.
            await connect(f"ws://evil.example:{port}/control?broker=north", host="127.0.0.1", port=port, proxy=None)
        assert refused.value.response.status_code == 403


async def test_a_page_is_not_told_what_it_may_not_read(tmp_path: Path) -> None:
    preflight = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    async with demo("coordinator", tmp_path) as url, httpx.AsyncClient(trust_env=False, verify=False) as client:
        ours = await client.options(f"{url}/broker", headers={"Origin": "http://localhost:3000", **preflight})
        assert ours.headers["access-control-allow-origin"] == "http://localhost:3000"
        other = await client.options(f"{url}/broker", headers={"Origin": "https://evil.example", **preflight})
        assert "access-control-allow-origin" not in other.headers
