"""On a Spark cluster what is published is stored by executors: a batch that the driver could not take is no harm."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from deltalake import DeltaTable
from rich.console import Console

from tests.hosts.test_cuts import active, calls, executors_python, executors_that_ran_tasks
from tests.waiting import until_async
from tocsin.local.cluster import ClusterNetwork, broker_names
from tocsin.local.hosts import hosts, why_not
from tocsin.local.infrastructure import MASTER, S3, infrastructure, spark_workers
from tocsin.local.network import COORDINATOR, DATA
from tocsin.local.running import Running
from tocsin.local.s3 import BUCKET, has_s3
from tocsin.local.screen import NetworkScreen

pytestmark = pytest.mark.process

SECONDS: Final = 300.0
RECORDS: Final = 2_000
REQUESTS: Final = 4
TEXT: Final = "x" * 2_000
# Spark refuses to bring more than this of a job to the driver. What is published is 16 times as much.
MOST_TO_DRIVER: Final = "1m"
Play = Callable[[ClusterNetwork, Path], Awaitable[None]]
APPLICATION: Final = """
CREATE DATASET Reports (id STRING, text STRING) PRIMARY KEY id;
CREATE FEED reports INTO Reports SLICED BY id INTO 4 SLICES;
CREATE KEYED DATASET Places (id STRING, place STRING) PRIMARY KEY id;
CREATE FEED places INTO Places SLICED BY id INTO 4 SLICES;
"""


@pytest.mark.parametrize("lake", ["directory", pytest.param("s3", marks=pytest.mark.s3)])
async def test_a_batch_that_the_driver_could_not_take_is_stored_by_executors(tmp_path: Path, lake: str) -> None:
    await on_hosts(tmp_path, lake, {"spark.driver.maxResultSize": MOST_TO_DRIVER}, store_much)


@pytest.mark.s3
async def test_executors_without_the_right_keys_to_the_lake_are_named_before_anything_is_published(
    tmp_path: Path,
) -> None:
    await on_hosts(tmp_path, "s3", {"spark.executorEnv.AWS_SECRET_ACCESS_KEY": "of-somebody-else"}, wait_for_problem)


async def on_hosts(directory: Path, lake: str, of_spark: dict[str, str], play: Play) -> None:
    """Plays with a network on a Spark cluster with one worker."""
    if reason := why_not():
        pytest.skip(reason)
    assert lake != S3 or has_s3(), "the S3 server is not there; scripts/ensure-s3 builds it"
    below_it = [S3] if lake == S3 else []
    names = [*below_it, MASTER, *spark_workers(1), DATA, COORDINATOR, *broker_names(1), "people"]
    spark = {"spark.pyspark.python": str(executors_python(directory)), **of_spark}
    screen, ended = NetworkScreen(Console(file=io.StringIO())), asyncio.Event()
    with hosts(*names) as made, infrastructure(made, directory, 1) as below, made.inside("people"):
        planned = ClusterNetwork(below, directory, 1, of_spark=spark)

        async def run() -> None:
            network = await asyncio.to_thread(planned.with_tokens)
            await Running(network, screen).run(ended, lambda: play(network, directory))

        await Running(below, screen).run(ended, run)


async def store_much(network: ClusterNetwork, directory: Path) -> None:
    """Publishes much, and looks where it went."""
    async with calls(network, await active(network)) as data:
        assert (await data.post("/apply", content=APPLICATION)).status_code == 200
        ids = [f"r{number}" for number in range(REQUESTS * RECORDS)]
        for first in range(0, len(ids), RECORDS):
            await publish(data, "reports", [{"id": one, "text": TEXT} for one in ids[first : first + RECORDS]])
        await publish(data, "places", [{"id": "a", "place": "here"}])
        await until_async(lambda: stored(data), "all records in their datasets", SECONDS)
        feeds = {feed["feed"]: feed for feed in (await data.get("/slices")).json()["feeds"]}
    assert {one["owner"] for one in feeds["reports"]["slices"]} == {"data"}
    assert (feeds["places"]["shared"], "Places is keyed" in feeds["places"]["reason"]) == (False, True)
    # The server keeps objects as files.
    lake = directory / S3 / "root" / BUCKET / "tocsin" if network.infrastructure.lake else directory / "data"
    table = DeltaTable(lake / "datasets" / "Reports").to_pyarrow_table(columns=["id"])
    assert sorted(table["id"].to_pylist()) == sorted(ids)
    assert executors_that_ran_tasks(directory) == set(spark_workers(1))


async def wait_for_problem(network: ClusterNetwork, directory: Path) -> None:
    """Makes a feed, and waits until it is said what keeps it from being stored."""
    async with calls(network, await active(network)) as data:
        assert (await data.post("/apply", content=APPLICATION)).status_code == 200

        async def told() -> list[str]:
            return [one for one in (await data.get("/health")).json()["problems"] if one.startswith("feed reports:")]

        [problem] = await until_async(told, "what is wrong with the feed", SECONDS)
    assert "Spark's executors cannot write at s3://lake/tocsin/datasets/Reports" in problem
    assert "credentials for the bucket" in problem


async def publish(data: httpx.AsyncClient, feed: str, records: list[dict[str, Any]]) -> None:
    """Publishes some records, which are accepted."""
    body = "\n".join(map(json.dumps, records)).encode()
    answer = await data.post(f"/feeds/{feed}", content=body)
    assert answer.status_code == 200, answer.text


async def stored(data: httpx.AsyncClient) -> bool:
    """Whether nothing waits; fails if something cannot be stored."""
    health = (await data.get("/health")).json()
    assert not health["problems"], health["problems"]
    return not any(feed["backlog_bytes"] for feed in health["feeds"])
