from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.data.server.memory import MemoryCluster, MemoryTokens
from tests.data.server.running import running
from tocsin.data.server.serve import bind, run
from tocsin.errors import SettingsError, UnavailableError
from tocsin.http.listening import address
from tocsin.settings import Settings


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_tells_its_real_port_and_ends_quietly_at_a_signal(
    cluster: MemoryCluster, settings: Settings, number: signal.Signals
) -> None:
    noted = settings.data.directory / "address"
    async with running(cluster, settings) as (url, server):
        assert noted.read_text(encoding="utf-8") == f"{url}\n"
        async with httpx.AsyncClient(base_url=url, trust_env=False, verify=False) as client:
            assert (await client.get("/health")).json() == {"status": "ok"}
        signal.raise_signal(number)
        await server
    assert not noted.exists()


async def test_a_call_under_way_is_answered_before_it_ends(
    cluster: MemoryCluster, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def slow(bes: list[int]) -> list[float]:
        arrived.set()
        await go_on.wait()
        return [1.0]

    monkeypatch.setattr(cluster, "rates", slow)
    async with (
        running(cluster, settings) as (url, _),
        httpx.AsyncClient(base_url=url, trust_env=False, verify=False) as client,
    ):
        headers = {"Authorization": "Bearer broker"}
        call = asyncio.create_task(client.post("/rates", json={"ids": [1]}, headers=headers))
        await arrived.wait()
        signal.raise_signal(signal.SIGTERM)
        go_on.set()
        assert (await call).json() == {"rates": [1.0]}


async def test_a_client_that_sends_all_of_a_body_too_large_still_gets_its_answer(
    cluster: MemoryCluster, settings: Settings
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3 * settings.data.max_request_bytes >> 20):
            yield b" " * (1 << 20)

    async with (
        running(cluster, settings) as (url, _),
        httpx.AsyncClient(base_url=url, trust_env=False, verify=False) as client,
    ):
        answer = await client.post("/feeds/reports", content=chunks(), headers={"Authorization": "Bearer publisher"})
        assert answer.status_code == 413
        assert (await client.get("/health")).status_code == 200


def test_a_port_that_is_taken_is_found_out_before_anything_starts(settings: Settings) -> None:
    with bind(settings) as first:
        first.listen()
        port = first.getsockname()[1]
        taken = msgspec.structs.replace(settings, data=msgspec.structs.replace(settings.data, port=port))
        with pytest.raises(UnavailableError, match=rf"cannot listen on 127.0.0.1, port {port}: .*; choose another"):
            bind(taken)


def test_a_host_that_is_none_is_named(settings: Settings) -> None:
    nowhere = msgspec.structs.replace(settings, data=msgspec.structs.replace(settings.data, host="192.0.2.1"))
    with pytest.raises(UnavailableError, match=r"192\.0\.2\.1"):
        bind(nowhere)


def test_who_listens_everywhere_is_reached_on_this_machine(settings: Settings) -> None:
    everywhere = msgspec.structs.replace(settings, data=msgspec.structs.replace(settings.data, host="0.0.0.0"))
    with bind(everywhere) as listener:
        assert address(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


async def test_a_demo_token_for_all_the_world_is_refused_before_it_listens(
    cluster: MemoryCluster, settings: Settings
) -> None:
    everywhere = msgspec.structs.replace(settings, data=msgspec.structs.replace(settings.data, host="0.0.0.0"))
    with pytest.raises(SettingsError, match="demo token"):
        await run(cluster, MemoryTokens(), everywhere, demo_token="demo")


PROCESS = """
import asyncio, sys, uvloop
from pathlib import Path
from tests.data.server.memory import MemoryCluster, MemoryTokens
from tests.data.server.running import running
from tocsin.data.server.serve import run
from tocsin.settings import DataSettings, Settings

async def main():
    await run(MemoryCluster(), MemoryTokens(), Settings(data=DataSettings(directory=Path(sys.argv[1]), port=0)),
              listening=lambda url: print(url, flush=True))
    print("the cluster is stopped after the server", flush=True)

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
"""


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_on_uvloop_ends_with_status_0_and_has_time_to_clean_up(
    tmp_path: Path, number: signal.Signals
) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert httpx.get(f"{url}/health", trust_env=False, verify=False).status_code == 200
        process.send_signal(number)
        assert process.stdout.read() == "the cluster is stopped after the server\n"
    assert process.returncode == 0
