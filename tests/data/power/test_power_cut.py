"""A power cut at any point of a real run: whatever the disk is left with, what was answered or told is there.

A data cluster runs under ``strace`` while somebody publishes and a broker listens, is killed, and runs again. The
recording is played back up to some point; of what had not been synced by then a random part is kept. The data directory
that this leaves is opened, as at a start, and compared with what the publisher and the broker had been told.

``POWER_CUTS`` says how many points, ``POWER_SEED`` which.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from websockets.sync.client import connect

from tests.data.power.filesystem import FileSystem
from tests.data.power.oracle import Found, Oracle, Told, opened
from tests.data.power.recording import Call, calls, command
from tests.e2e.process import DataProcess
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.spark]

CUTS = int(os.environ.get("POWER_CUTS", "80"))
SEED = int(os.environ.get("POWER_SEED", "1"))
APPLICATION = """
CREATE DATASET Reports (id STRING, etype STRING, message STRING) PRIMARY KEY id;
CREATE KEYED DATASET People (name STRING, step INT) PRIMARY KEY name;
CREATE FEED reports INTO Reports SLICED BY id INTO 2 SLICES;
CREATE FEED people INTO People SLICED BY name INTO 2 SLICES;
CREATE CONTINUOUS CHANNEL OfType(event STRING) AS
  SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r);
"""
NAMES = ("Reports", "People", "reports", "people", "OfType")
ASIDE = """
CREATE DATASET Others (id STRING) PRIMARY KEY id;
CREATE FEED others INTO Others SLICED BY id INTO 2 SLICES;
CREATE CONTINUOUS CHANNEL OfOthers(name STRING) AS SELECT o.id FROM Others o WHERE o.id = name AND is_new(o);
"""
_ROUNDS = 20
# Everything small, so that logs roll, files are compacted and deleted, and checkpoints are written within seconds.
_SETTINGS = {
    "feeds.segment_bytes": 2048,
    "feeds.append_commit_ms": 100,
    "feeds.keyed_commit_ms": 100,
    "lake.maintenance_seconds": 1,
    "lake.vacuum_after_seconds": 0.1,
    "lake.compact_files": 5,
    "lake.checkpoint_commits": 5,
}


@dataclass
class Recording:
    """A run: where it was, what was done to its files, and what was said meanwhile."""

    directory: Path
    calls: list[Call]
    oracle: Oracle

    def cut(self, point: int, chance: Random, place: Path) -> float:
        """Writes what a cut before the call ``point`` may leave into ``place``; when that is."""
        disk = FileSystem(self.directory)
        for call in self.calls[:point]:
            disk.apply(call)
        shutil.rmtree(place, ignore_errors=True)
        disk.write_after_cut(place, chance)
        return self.calls[point].ended


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A run in which everything happens that a table, a log and a catalog can meet."""
    return record(tmp_path_factory.mktemp("recorded"))


def record(place: Path) -> Recording:
    """Two lives on one directory: the first is killed, and the second goes on with what it left."""
    directory, oracle, recorded = place / "data", Oracle(), list[Call]()
    for life in range(2):
        output = place / f"trace-{life}"
        server = DataProcess(directory, place / f"log-{life}", _SETTINGS, command(output))
        try:
            server.start()
            server.wait_ready()
            if life == 0:
                begin(server, oracle)
            live(server, oracle, range(life * _ROUNDS, (life + 1) * _ROUNDS))
            server.kill()
            server.wait_alone()
        finally:
            server.close()
        recorded += calls(output, directory, directory / "scratch")
    return Recording(directory, recorded, oracle)


def begin(server: DataProcess, oracle: Oracle) -> None:
    server.apply(APPLICATION)
    oracle.applied.append((time.time(), dict.fromkeys(NAMES, True)))
    bes = server.subscribe("OfType", [{"event": f"e{n}"} for n in range(3)])
    oracle.attached.append((time.time(), bes))


def live(server: DataProcess, oracle: Oracle, rounds: range) -> None:
    with Listener(server, oracle) as listener:
        for number in rounds:
            work(server, oracle, number)
            if number % 10 == 8:
                until(lambda: oracle.accepted(time.time()) == listener.pulled())


def work(server: DataProcess, oracle: Oracle, number: int) -> None:
    """Publishes, to both feeds, some of it again; now and then makes something else, and drops it again."""
    reports = [{"id": f"r{number}-{n}", "etype": f"e{n % 3}", "message": "x" * 100} for n in range(3)]
    again = [{"id": f"r{number - 1}-0", "etype": "e0", "message": ""}] if number % 5 == 4 else []
    publish(server, "reports", [*reports, *again])
    oracle.appended.append((time.time(), [report["id"] for report in reports]))
    moved = {f"p{(number + n) % 7}": number for n in range(2)}
    publish(server, "people", [{"name": name, "step": step} for name, step in moved.items()])
    oracle.moved.append((time.time(), moved))
    if number % 10 == 2:
        server.apply(ASIDE)
        oracle.applied.append((time.time(), {"Others": True, "others": True, "OfOthers": True}))
    if number % 10 == 7:
        server.apply("DROP CHANNEL OfOthers; DROP FEED others; DROP DATASET Others;")
        oracle.applied.append((time.time(), {"Others": False, "others": False, "OfOthers": False}))


def publish(server: DataProcess, feed: str, records: Sequence[Mapping[str, object]]) -> None:
    answer = server.publish(feed, "\n".join(map(json.dumps, records)).encode())
    assert (answer.status_code, answer.json()["accepted"]) == (200, len(records)), answer.text


class Listener(threading.Thread):
    """A broker that hears of executions and pulls what they found."""

    def __init__(self, server: DataProcess, oracle: Oracle) -> None:
        super().__init__(daemon=True)
        self._server, self._oracle = server, oracle
        self._finishing = threading.Event()
        self._connected = threading.Event()

    def __enter__(self) -> Listener:
        self.start()
        assert self._connected.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._finishing.set()
        self.join()

    def pulled(self) -> set[str]:
        """Pulls everything; the ids of the records in it."""
        return self._pull(1, 1_000_000)

    def run(self) -> None:
        url = f"ws://127.0.0.1:{self._server.port}/control?broker=tester"
        with connect(url, additional_headers={"authorization": "Bearer demo"}, max_size=None) as socket:
            self._connected.set()
            while not self._finishing.is_set():
                try:
                    message = json.loads(socket.recv(timeout=0.2))
                except TimeoutError:
                    continue
                if message["type"] == "executed" and message["channel"] == "OfType":
                    self._oracle.told.append((time.time(), Told(message["execution"])))
                    self._pull(message["execution"], message["execution"])

    def _pull(self, first: int, last: int) -> set[str]:
        """What a pull answers is told, too."""
        results = self._server.results("OfType", first, last)
        now, found = time.time(), dict[int, set[Found]]()
        for result in results:
            found.setdefault(result["execution"], set()).update((result["be"], row["id"]) for row in result["payload"])
        self._oracle.told += [(now, Told(execution, frozenset(rows))) for execution, rows in found.items()]
        return {name for rows in found.values() for _, name in rows}


def points(recording: Recording, count: int) -> list[tuple[int, Random]]:
    """Points at which to cut, each with its own chance."""
    chance = Random(SEED)
    return [(chance.randrange(1, len(recording.calls)), Random(chance.getrandbits(32))) for _ in range(count)]


def test_what_was_answered_or_told_outlives_a_power_cut_at_any_point(recording: Recording, tmp_path: Path) -> None:
    for number, (point, chance) in enumerate(points(recording, CUTS)):
        cut = recording.cut(point, chance, tmp_path / "data")
        try:
            with opened(tmp_path / "data", Future(), {}) as catalog:
                recording.oracle.check(catalog, cut)
        except Exception as error:
            raise AssertionError(f"cut {number} (POWER_SEED={SEED}), before call {point}: {error}") from error


def test_the_recording_has_everything_that_can_be_cut(recording: Recording) -> None:
    done = {(call.name, Path(path).name, Path(path).suffix) for call in recording.calls for path in call.paths}
    assert {"_last_checkpoint", "ends", "state.sqlite-wal"} <= {name for _, name, _ in done}
    kinds = {(name, suffix) for name, _, suffix in done}
    assert {("link", ".json"), ("sync", ".parquet"), ("unlink", ".parquet"), ("unlink", ".json")} <= kinds
    assert {("unlink", ".log"), ("sync", ".log"), ("sync", ".sqlite-wal")} <= kinds
    assert ".removed-Others" in {name for _, name, _ in done}
    assert len({told.execution for _, told in recording.oracle.told}) >= 4


SYNCS = {
    "data files": r"/part-[^/]*\.parquet",
    "entries": r"/_draft-\w+",
    "tables": r"/(datasets|results)/\w+",
    "logs of tables": r"/_delta_log",
    "where tables are": r"/(datasets|results)",
    "where feeds are": r"/feeds",
    "feeds": r"/feeds/\w+",
    "slices": r"/slice-\d+",
    "segments": r"/\d+\.log",
    "the data directory": r"/data",
    "the store": r"/state\.sqlite-wal",
}


@pytest.mark.parametrize("left_out", SYNCS.values(), ids=SYNCS)
def test_no_sync_could_be_left_out(recording: Recording, tmp_path: Path, left_out: str) -> None:
    pattern = re.compile(f".*{left_out}")
    kept = [call for call in recording.calls if call.name != "sync" or not pattern.fullmatch(call.paths[0])]
    careless = Recording(recording.directory, kept, recording.oracle)

    def lost(point: int, chance: Random) -> bool:
        cut = careless.cut(point, chance, tmp_path / "data")
        try:
            with opened(tmp_path / "data", Future(), {}) as catalog:
                careless.oracle.check(catalog, cut)
        except Exception:
            return True
        return False

    assert any(lost(*cut) for cut in points(careless, 200))


@pytest.mark.parametrize("number", range(3))
def test_a_data_cluster_goes_on_after_a_power_cut_and_finds_everything_once(
    recording: Recording, spark: SparkSession, tmp_path: Path, number: int
) -> None:
    chance = Random(SEED * 1000 + number)
    point = chance.randrange(len(recording.calls) // 3, len(recording.calls))
    cut = recording.cut(point, chance, tmp_path / "data")
    promised: Future[SparkSession] = Future()
    promised.set_result(spark)
    with opened(tmp_path / "data", promised, {}) as catalog:
        catalog.start()
        accepted = recording.oracle.accepted(cut)

        def found() -> list[str]:
            parts = catalog.live["OfType"].results.pull(1, 10**9)
            return [row["id"] for part in parts for result in part.results for row in json.loads(bytes(result.payload))]

        until(lambda: accepted <= set(found()))
        assert len(found()) == len(set(found()))
        recording.oracle.check(catalog, cut)
