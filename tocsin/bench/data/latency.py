"""How long a publication takes to become a result: from the request to the notice a broker gets."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from tocsin.bench.data.server import BenchServer
from tocsin.bench.report import Figure, quantile
from tocsin.client.operator import ServerCalls

_KINDS = 10


@dataclass(frozen=True)
class ProbedFeed:
    """What is published: a feed and a channel with the parameter ``event``, and so many records in each request.

    Args:
        ids: of the records, by the number of the request and their own in it.
    """

    application: str
    feed: str
    channel: str
    size: int
    ids: Callable[[int, int], str | int]

    def records(self, request: int) -> list[dict[str, Any]]:
        """The records of a request."""
        return [{"id": self.ids(request, i), "etype": f"e{i % _KINDS}", "message": "x" * 400} for i in range(self.size)]


APPLICATION = """
CREATE DATASET Alarms (id STRING, etype STRING, message STRING) PRIMARY KEY id;
CREATE FEED alarms INTO Alarms SLICED BY id INTO 16 SLICES;
CREATE CONTINUOUS CHANNEL AlarmsOfType(event STRING) AS SELECT a.* FROM Alarms a WHERE a.etype = event AND is_new(a);
"""
ALARMS = ProbedFeed(APPLICATION, "alarms", "AlarmsOfType", 10, lambda request, i: f"{request}-{i}")
"""100 records a second."""
_GROUP = "publish → result ready, continuous, 100 records/s"
_PRICE = "the same, what syncing adds (in turns with one that does not)"
_TURNS = 6
# The JVM compiles what it runs often; until then everything takes several times as long.
WARM_SECONDS = 60


def latency(server: BenchServer, seconds: float, say: Callable[[str], None]) -> list[Figure]:
    """100 records a second, ten requests a second, each record wanted by one subscription."""
    say(f"publishing 100 records/s for {WARM_SECONDS + seconds:.0f} s to a continuous channel")
    probe = LatencyProbe(server)
    probe.publish(WARM_SECONDS)
    ids = probe.publish(seconds)
    delays, missing = probe.delays(ids)
    since = quantile(probe.since_acknowledged(ids), 0.5)
    p50, p99 = quantile(delays, 0.5), quantile(delays, 0.99)
    unit = _unit(server)
    return [
        Figure(_GROUP, "p50", p50, "s", p50 / unit, "a bare HTTP round trip", "≤ 0.5 s", p50 <= 0.5),
        Figure(_GROUP, "p99", p99, "s", p99 / unit, "a bare HTTP round trip", "≤ 1.5 s", p99 <= 1.5),
        Figure(_GROUP, "p50, from the acknowledgement", since, "s"),
        Figure(_GROUP, "the publisher itself late, p99", quantile(probe.late, 0.99), "s"),
        Figure(_GROUP, "records that never came", missing, "", target="0", met=missing == 0),
    ]


def price_of_syncing(directory: Path, seconds: float, say: Callable[[str], None]) -> list[Figure]:
    """What waiting for the disk adds: two servers, one of which does not wait, are published to in turns."""
    say(f"publishing 100 records/s to two servers in turns, for {2 * (WARM_SECONDS + seconds):.0f} s")
    with (
        BenchServer(directory / "synced") as synced,
        BenchServer(directory / "unsynced", ["lake.sync=false"]) as unsynced,
    ):
        both = [LatencyProbe(server) for server in (synced, unsynced)]
        for probe in both:
            probe.publish(WARM_SECONDS)
        ids: list[list[str | int]] = [[], []]
        for _ in range(_TURNS):
            for probe, published in zip(both, ids, strict=True):
                published += probe.publish(seconds / _TURNS)
        p50, bare = (quantile(t.delays(p)[0], 0.5) for t, p in zip(both, ids, strict=True))
    return [
        Figure(_PRICE, "p50 with lake.sync = false", bare, "s"),
        Figure(_PRICE, "p50", p50, "s", p50 / bare, "with lake.sync = false", "< 1.2×", p50 < 1.2 * bare),
    ]


class LatencyProbe:
    """Publications to a server, ten requests a second, and when their results were told of."""

    def __init__(self, server: BenchServer, probed: ProbedFeed = ALARMS) -> None:
        self._server, self._probed = server, probed
        self._requests = itertools.count()
        self._published: dict[str | int, float] = {}
        self._acknowledged: dict[str | int, float] = {}
        self._arrived: dict[str | int, float] = {}
        self.late: list[float] = []
        """By how much requests were sent later than they were due."""
        self._finishing = threading.Event()
        server.apply(probed.application)
        parameters = [{"event": f"e{i}"} for i in range(_KINDS)]
        wanted = {"broker": "bench", "channel": probed.channel, "parameters": parameters}
        with server.calls() as calls:
            calls.call("POST", "/brokers", json={"name": "bench", "url": "http://127.0.0.1:1"})
            calls.call("POST", "/subscriptions", json=wanted)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def publish(self, seconds: float) -> list[str | int]:
        """Publishes for a while; the ids."""
        began, ids = time.time(), list[str | int]()
        with self._server.calls() as calls:
            for turn in range(int(seconds * 10)):
                time.sleep(max(began + turn / 10 - time.time(), 0))
                self.late.append(time.time() - began - turn / 10)
                ids += self._request(calls)
        return ids

    def delays(self, ids: list[str | int]) -> tuple[list[float], int]:
        """How long these took, and how many never came. Ends the listening: ask for the last ones first."""
        deadline = time.time() + 60
        while time.time() < deadline and not self._finishing.is_set() and not self._arrived.keys() >= set(ids):
            time.sleep(0.1)
        self._finishing.set()
        self._listener.join()
        delays = [self._arrived[i] - self._published[i] for i in ids if i in self._arrived]
        return delays, len(ids) - len(delays)

    def since_acknowledged(self, ids: list[str | int]) -> list[float]:
        """How long those that came took from when the publisher had its answer."""
        return [max(self._arrived[i] - self._acknowledged[i], 0.0) for i in ids if i in self._arrived]

    def _request(self, calls: ServerCalls) -> list[str | int]:
        records = self._probed.records(next(self._requests))
        now, ids = time.time(), [record["id"] for record in records]
        self._published.update(dict.fromkeys(ids, now))
        calls.call("POST", f"/feeds/{self._probed.feed}", json=records)
        self._acknowledged.update(dict.fromkeys(ids, time.time()))
        return ids

    def _listen(self) -> None:
        """Takes the time of each notice, then pulls to see which records it was about."""
        url = self._server.url.replace("http", "ws", 1) + "/control?broker=bench"
        headers = {"authorization": f"Bearer {self._server.token}"}
        with connect(url, additional_headers=headers, max_size=None) as socket, self._server.calls() as calls:
            while not self._finishing.is_set():
                try:
                    message = json.loads(socket.recv(timeout=1))
                except TimeoutError:
                    continue
                if message["type"] in {"executed", "behind"}:
                    self._note(calls, message, time.time())

    def _note(self, calls: ServerCalls, message: dict[str, Any], now: float) -> None:
        first, last = message.get("first", message.get("execution")), message.get("last", message.get("execution"))
        wanted = {"channel": message["channel"], "first": first, "last": last}
        for result in json.loads(calls.call("POST", "/results", json=wanted))["results"]:
            for row in result["payload"]:
                self._arrived.setdefault(row["id"], now)


def _unit(server: BenchServer) -> float:
    """What this machine needs right now for the smallest call, to compare runs on machines of different speed."""
    with server.calls() as calls:
        times = []
        for _ in range(50):
            began = time.perf_counter()
            calls.call("GET", "/health")
            times.append(time.perf_counter() - began)
    return quantile(times, 0.5)
