"""Everything that a whole network logs, at the level that tells most, has none of the secrets it was given."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

import httpx
import pytest

import tocsin
from tests.e2e.process import ROOT, DataProcess
from tests.network.process import ServerProcess
from tests.network.reports import APPLICATION
from tests.ports import free_port
from tests.waiting import until_async

DEBUG: Final = {"log.level": "debug", "log.format": "json"}
NAMES: Final = ("data", "coordinator", "north")
SPARK: Final = {
    "spark.extra.spark.hadoop.fs.s3a.secret.key": "spark-key-hunter2",
    "spark.extra.spark.hadoop.fs.azure.account.key.box": "azure-key-hunter2",
    "spark.extra.spark.tocsin.url": "https://box.example.org/?sig=zanzibar-hunter2",
}
SPARK_SECRETS: Final = {"spark-key-hunter2", "azure-key-hunter2", "zanzibar-hunter2"}

pytestmark = pytest.mark.process


def printed(*arguments: str) -> str:
    """What a command prints: a token."""
    command = [sys.executable, "-m", "tocsin", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def stored_keys(file: Path) -> set[str]:
    """The keys that tokens are signed with."""
    with closing(sqlite3.connect(file)) as database:
        facts = dict(database.execute("SELECT name, value FROM facts"))
    keys = {part for name, value in facts.items() if "key" in name for part in re.findall(r"[\w+/-]{32,}", value)}
    assert keys
    return keys


def told(log: Path, secrets: set[str]) -> list[str]:
    """The secrets in a log; half of one counts, for it would help to guess the rest."""
    text = log.read_text(encoding="utf-8", errors="replace")
    assert '"debug"' in text, f"{log.name} says little"
    return [one for one in secrets if one[: -len(one) // 2] in text or one[len(one) // 2 :] in text]


async def test_no_log_of_a_network_has_a_secret(tmp_path: Path) -> None:
    data = DataProcess(tmp_path / "data", tmp_path / "data.log", {**DEBUG, **SPARK})
    at = {"coordinator.port": free_port(), "coordinator.directory": tmp_path / "coordinator"}
    keys = [f"--set={key}={value}" for key, value in at.items()]
    tokens = {
        role: printed(*keys, "token", "sign", name, "--role", role)
        for role, name in (("broker", "north"), ("operator", "olga"), ("subscriber", "eve"))
    }
    coordinator = ServerProcess(
        "coordinator", ["coordinator"], {**DEBUG, **at}, int(str(at["coordinator.port"])), tmp_path / "coordinator.log"
    )
    try:
        data.start()
        of_data = {
            role: printed(f"--set=data.directory={data.directory}", "token", "add", name, "--role", role)
            for role, name in (("admin", "olga"), ("publisher", "paul"), ("broker", "north"))
        }
        await coordinator.start()
        port = free_port()
        given = {
            "broker.name": "north",
            "broker.port": port,
            "broker.coordinator": coordinator.url,
            "broker.data": f"http://127.0.0.1:{data.port}",
            "broker.token": tokens["broker"],
            "broker.data_token": of_data["broker"],
        }
        broker = ServerProcess("north", ["broker"], {**DEBUG, **given}, port, tmp_path / "north.log")
        try:
            await broker.start()
            data.wait_ready()
            data.apply(APPLICATION)
            secrets = await _used(data, coordinator, broker, tokens["operator"], of_data)
        finally:
            broker.close()
    finally:
        coordinator.close()
        data.close()
    secrets |= {*tokens.values(), *of_data.values(), *SPARK_SECRETS}
    secrets |= stored_keys(tmp_path / "coordinator" / "coordinator.sqlite")
    assert {name: told(tmp_path / f"{name}.log", secrets) for name in NAMES} == {name: [] for name in NAMES}


async def _used(
    data: DataProcess, coordinator: ServerProcess, broker: ServerProcess, operator: str, of_data: dict[str, str]
) -> set[str]:
    """Has everybody do what they do, and some what they may not; the secrets that were used."""
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=30) as client:
        bearer = {"Authorization": f"Bearer {operator}"}
        registered = await client.post(f"{coordinator.url}/users", json={"name": "ann"}, headers=bearer)
        token = str(registered.json()["token"])
        async with asyncio.timeout(180), tocsin.connect(coordinator.url, token) as ann:
            fires = await ann.subscribe("OfKind", wanted="fire")
            data.client.headers["Authorization"] = f"Bearer {of_data['publisher']}"
            assert data.publish("reports", b'{"id": "1", "kind": "fire", "level": 1, "owner": "p"}').is_success
            await anext(aiter(fires))
        strange = {"Authorization": "Bearer strange-token-of-somebody"}
        for server in (f"http://127.0.0.1:{data.port}/datasets", f"{coordinator.url}/status", f"{broker.url}/status"):
            assert (await client.get(server, headers=strange, params={"token": "in-the-query-1234"})).status_code == 401
        assert (await client.get(f"{broker.url}/status", headers=bearer)).is_success
        broken = await client.post(f"{coordinator.url}/users", content=b'{"token": "in-the-body-12345"', headers=bearer)
        assert broken.status_code == 400

        async def connected() -> bool:
            return bool((await client.get(f"{broker.url}/health")).json()["data"])

        await until_async(connected, "link to the data cluster")
    return {token, "strange-token-of-somebody", "in-the-query-1234", "in-the-body-12345"}
