"""Kill -9 at any point, start again, go on: nothing accepted is lost, nothing is stored or found twice.

``E2E_KILLS`` sets how often the process is killed, ``E2E_SEED`` replays a run: the same records and the same times of
killing, as far as the machine keeps the same pace.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx
import pytest
from deltalake import DeltaTable

from tests.e2e.conftest import Cluster
from tests.e2e.oracle import APPLICATION, City, csv, matches, ndjson, subscriptions
from tests.e2e.process import DataProcess
from tests.e2e.publishing import Publisher

pytestmark = pytest.mark.process

_PAUSE: Final = 0.03
_AGAIN: Final = 0.2

# Tables are looked after while the process is killed, too.
_SETTINGS: Final = {
    "lake__maintenance_seconds": 2,
    "lake__vacuum_after_seconds": 5,
    "lake__compact_files": 6,
    "feeds__keyed_commit_ms": 200,
}


class CityPublisher(Publisher):
    """Publishes what happens in a city, some reports again, as one who lost count does."""

    def __init__(self, server: DataProcess, city: City) -> None:
        super().__init__(server, Random(city.chance.random()), _PAUSE)
        self._city = city

    def publish_more(self, client: httpx.Client) -> None:
        self.until_acknowledged(client, "reports", self._city.batch(self._chance.randint(1, 12)))
        self.until_acknowledged(client, "people", self._city.moved(self._chance.randint(1, 6)))
        if self._chance.random() < _AGAIN:
            self.until_acknowledged(client, "reports", self._chance.choices(self._city.reports, k=3))


class Killer:
    """Kills the process at random points of its life, and starts it again."""

    def __init__(self, server: DataProcess, chance: Random) -> None:
        self._server, self._chance = server, chance
        self._moments: dict[str, tuple[Callable[[], None], float, float]] = {
            "while it starts": (lambda: None, 0, 1.5),
            "while it only accepts": (server.wait_listening, 0, 1),
            "while Spark starts": (server.wait_listening, 1, 8),
            "while it stores": (self._wait_stored, 0, 2),
            "while it executes": (self._wait_executed, 0, 2),
        }

    def schedule(self, kills: int) -> list[str]:
        """The moment of each kill, in random order, with none left out."""
        names = list(self._moments)
        schedule = [names[-1 - n % len(names)] for n in range(kills)]
        self._chance.shuffle(schedule)
        return schedule

    def kill(self, moment: str) -> None:
        """Waits for the moment and a random while, kills, and begins to start anew."""
        wait, least, most = self._moments[moment]
        seconds = self._chance.uniform(least, most)
        wait()
        threading.Event().wait(seconds)
        assert self._server.running, self._server.tail()
        self._server.kill()
        print(f"killed {moment}, {seconds:.3f} s later", flush=True)
        self._server.spawn()

    def _wait_stored(self) -> None:
        self._server.wait_listening()
        self._wait_for_more("datasets", "version")

    def _wait_executed(self) -> None:
        self._server.wait_listening()
        self._wait_for_more("channels", "execution")

    def _wait_for_more(self, things: str, counted: str) -> None:
        """Waits until one of the things has gone further than when it started."""
        before = self._server.listed(things, counted)
        self._server.until(lambda: self._server.listed(things, counted) != before, f"new {counted}")


def begin(server: DataProcess, city: City) -> dict[str, list[int]]:
    """An application with everything in it that channels join with, and subscriptions before the first report."""
    server.start()
    server.wait_ready()
    server.apply(APPLICATION)
    loaded = server.client.post(
        "/datasets/Shelters/load", content=csv(city.shelters), headers={"Content-Type": "text/csv"}
    )
    assert loaded.json()["rows"] == len(city.shelters)
    assert server.publish("people", ndjson(city.residents)).status_code == 200
    server.wait_drained()
    return subscribe(server, city)


def subscribe(server: DataProcess, city: City) -> dict[str, list[int]]:
    return {channel: server.subscribe(channel, wanted) for channel, wanted in subscriptions(city).items()}


def stored(directory: Path, *columns: str) -> list[dict[str, Any]]:
    """The rows of a table, read as any tool of a lakehouse would."""
    return list(DeltaTable(str(directory)).to_pyarrow_table(columns=list(columns)).to_pylist())


def payloads(results: Iterable[dict[str, Any]], be: int) -> list[dict[str, Any]]:
    return [row for result in results if result["be"] == be for row in result["payload"]]


def counted(rows: Iterable[dict[str, Any]]) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def found_last(server: DataProcess, channel: str, bes: list[int], last: set[str]) -> bool:
    """Whether each subscription has one of the last reports, and with it all that came before."""
    results = server.results(channel)
    return all(last & {row["id"] for row in payloads(results, be)} for be in bes)


def check_datasets(server: DataProcess, city: City) -> None:
    datasets = server.directory / "datasets"
    reports = stored(datasets / "Reports", "id", "etype", "severity", "x", "y")
    assert counted(reports) == counted(city.reports)
    people = stored(datasets / "People", "userId", "x", "y", "step")
    assert counted(people) == counted(city.people().values())


def check_results(server: DataProcess, city: City, bes: dict[str, list[int]]) -> None:
    for channel, wanted in subscriptions(city).items():
        results = server.results(channel)
        for be, parameters in zip(bes[channel], wanted, strict=True):
            found, expected = counted(payloads(results, be)), counted(matches(city, channel, parameters))
            assert found == expected, (
                f"{channel} {parameters}: lost {expected - found}, twice or from nowhere {found - expected}"
            )


def check_executions(server: DataProcess) -> None:
    """Every commit is one execution: no number is left out and none is used twice."""
    for name, executions in server.listed("channels", "execution").items():
        directory = server.directory / "results" / name
        rows = stored(directory, "execution", "be", "_v")
        assert max(Counter((row["execution"], row["be"]) for row in rows).values()) == 1
        assert all(row["execution"] == row["_v"] for row in rows)
        history = DeltaTable(str(directory)).history()
        writes = [commit for commit in history if commit["operation"] == "WRITE"]
        assert executions >= max(row["execution"] for row in rows)
        # Once the log has been shortened, its beginning is not there to be counted.
        assert executions == len(writes) or (history[-1]["version"] > 0 and executions > len(writes))


def published(server: DataProcess, city: City, publisher: Publisher, bes: dict[str, list[int]]) -> None:
    """Waits until all that was published is in the datasets and every channel has seen it."""
    publisher.finish()
    assert not publisher.fault
    server.wait_ready()
    server.wait_drained()
    last = city.last_batch()
    assert server.publish("reports", ndjson(last)).status_code == 200
    for channel, ids in bes.items():
        found = partial(found_last, server, channel, ids, {report["id"] for report in last})
        server.until(found, f"last results of {channel}")


def test_a_process_killed_again_and_again_loses_nothing_and_does_nothing_twice(cluster: Cluster) -> None:
    kills = int(os.environ.get("E2E_KILLS", "20"))
    seed = int(os.environ.get("E2E_SEED", str(Random().getrandbits(32))))
    print(f"E2E_SEED={seed} E2E_KILLS={kills}", flush=True)
    city, server = City(Random(seed)), cluster(**_SETTINGS)
    bes = begin(server, city)
    publisher, killer = CityPublisher(server, city), Killer(server, Random(seed + 1))
    publisher.start()
    for moment in killer.schedule(kills):
        killer.kill(moment)
    server.wait_listening()
    published(server, city, publisher, bes)
    print(f"{len(city.reports)} reports, {len(city.moves)} moves, {publisher.attempts} requests", flush=True)
    assert subscribe(server, city) == bes
    check_executions(server)
    check_results(server, city, bes)
    check_datasets(server, city)
    assert server.health()["problems"] == []


def test_nothing_outlives_a_process_that_was_killed(cluster: Cluster) -> None:
    server = cluster()
    server.start()
    server.apply("CREATE DATASET Reports (id STRING) PRIMARY KEY id; CREATE FEED reports INTO Reports;")
    assert server.publish("reports", b'{"id": "1"}').status_code == 200
    server.wait_ready()
    server.wait_drained()
    assert {process.name() for process in server.relatives()} >= {"java"}
    server.kill()
    server.wait_alone()


def test_nothing_outlives_a_process_that_was_killed_while_spark_started(cluster: Cluster) -> None:
    server = cluster()
    server.spawn()
    server.until(server.relatives, "beginning of Java")
    server.kill()
    server.wait_alone()
