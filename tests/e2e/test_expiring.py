"""Who was away for longer than results are kept is told what is gone, and gets what is left.

Real processes: a data cluster, a coordinator and a broker, a program with the client library, and ``tocsin subscribe``.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import tocsin
from tests.e2e.conftest import Cluster
from tests.e2e.floods import APPLICATION, PATIENCE, changed, gets, publish
from tests.e2e.process import ROOT, DataProcess
from tests.network.network import Network
from tocsin.client.note import Gap

pytestmark = pytest.mark.process


@pytest.fixture
async def network(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Network]:
    """A broker and a coordinator on a data cluster that keeps results for hardly any time."""
    data = cluster(results__retention_seconds=0.5, lake__maintenance_seconds=0.5)
    data.start()
    data.wait_ready()
    data.apply(APPLICATION)
    async with Network(data, tmp_path, "expiring") as network:
        await network.add("a")
        yield network


def wait_executed(data: DataProcess, execution: int) -> None:
    """Waits until the channel has been executed so often."""
    data.until(lambda: data.channels()["OfKind"]["execution"] == execution, f"execution {execution}")


def wait_expired(data: DataProcess, execution: int) -> None:
    """Waits until nothing is kept of what was found up to an execution."""

    def expired() -> bool:
        answer = data.client.post("/results", json={"channel": "OfKind", "first": 1, "last": execution})
        return bool(answer.json()["oldest"] > execution)

    data.until(expired, "removal of old results")


async def printed(network: Network, token: str) -> list[str]:
    """What ``tocsin subscribe`` prints up to the first notification."""
    arguments = ["subscribe", "OfKind", "--param", "wanted=flood", "--count", "1"]
    command = [sys.executable, "-m", "tocsin", *arguments, "--coordinator", network.url, "--token", token]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=PIPE, stderr=PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, told = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, told.decode()
    return out.decode().splitlines()


async def test_who_was_away_for_too_long_is_told_of_the_gap(network: Network) -> None:
    data = network.data
    tokens = {name: await network.register(name) for name in ("ann", "bob")}
    for token in tokens.values():
        async with tocsin.connect(network.url, token) as somebody:
            await somebody.subscribe("OfKind", wanted="flood")
    for missed in ("r1", "r2", "r3"):
        await publish(data, missed)
        await asyncio.to_thread(wait_executed, data, int(missed[1:]))
    await asyncio.to_thread(wait_expired, data, 3)

    # What is found from now on is kept for as long as the machine may take.
    data.settings.pop("results.retention_seconds")
    await changed(data, lambda: None)
    # The broker remembers what it has pulled, until it starts anew.
    network.brokers["a"].process.kill()
    await network.brokers["a"].process.start()
    await publish(data, "r4")
    gaps: list[Gap] = []
    async with tocsin.connect(network.url, tokens["ann"]) as ann:
        floods = await ann.subscribe("OfKind", wanted="flood", on_gap=gaps.append)
        await gets(floods, "r4")
        assert gaps == [Gap(floods.number, "OfKind", 1, 3)]
    gap, note, row = await printed(network, tokens["bob"])
    assert gap == "what executions 1 to 3 of OfKind found is not kept any more"
    assert "OfKind #4" in note
    assert "id: r4" in row
