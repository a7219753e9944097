"""How long a publication takes to become a result: from the request to the notice a broker gets."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from websockets.sync.client import connect

from tocsin.bench.data.server import Server
from tocsin.bench.report import Figure, quantile

APPLICATION = """
CREATE DATASET Alarms (id STRING, etype STRING, message STRING) PRIMARY KEY id;
CREATE FEED alarms INTO Alarms SLICED BY id INTO 16 SLICES;
CREATE CONTINUOUS CHANNEL AlarmsOfType(event STRING) AS SELECT a.* FROM Alarms a WHERE a.etype = event AND is_new(a);
"""
_GROUP = "publish → result ready, continuous, 100 records/s"
_KINDS = 10
_RATE = 100
# The JVM compiles what it runs often; until then everything takes several times as long.
_WARM_SECONDS = 60


def latency(server: Server, seconds: float, say: Callable[[str], None]) -> list[Figure]:
    """100 records a second, ten requests a second, each record wanted by one subscription."""
    delays, missing = _delays(server, seconds, say)
    p50, p99 = quantile(delays, 0.5), quantile(delays, 0.99)
    unit = _unit(server)
    return [
        Figure(_GROUP, "p50", p50, "s", p50 / unit, "a bare HTTP round trip", "≤ 0.5 s", p50 <= 0.5),
        Figure(_GROUP, "p99", p99, "s", p99 / unit, "a bare HTTP round trip", "≤ 1.5 s", p99 <= 1.5),
        Figure(_GROUP, "records that never came", missing, "", target="0", met=missing == 0),
    ]


def price_of_syncing(directory: Path, p50: float, seconds: float, say: Callable[[str], None]) -> Figure:
    """What waiting for the disk adds: ``p50`` beside that of a server that does not wait."""
    say("the same without waiting for the disk")
    with Server(directory, ["lake.sync=false"]) as server:
        delays, _ = _delays(server, seconds, say)
    ratio = p50 / quantile(delays, 0.5)
    return Figure(_GROUP, "p50 again", p50, "s", ratio, "the same with lake.sync = false", "< 1.2×", ratio < 1.2)


def _delays(server: Server, seconds: float, say: Callable[[str], None]) -> tuple[list[float], int]:
    """How long each record took, and how many never came."""
    server.apply(APPLICATION)
    server.call("POST", "/brokers", json={"name": "bench", "url": "http://127.0.0.1:1"})
    parameters = [{"event": f"e{i}"} for i in range(_KINDS)]
    server.call("POST", "/subscriptions", json={"broker": "bench", "channel": "AlarmsOfType", "parameters": parameters})
    say(f"publishing 100 records/s for {_WARM_SECONDS + seconds:.0f} s to a continuous channel")
    published: dict[str, float] = {}
    arrived: dict[str, float] = {}
    listener = threading.Thread(target=_listen, args=(server, arrived, published, seconds), daemon=True)
    listener.start()
    began = time.time()
    with server.client() as client:
        for turn in range(int((_WARM_SECONDS + seconds) * 10)):
            pause = began + turn / 10 - time.time()
            if pause > 0:
                time.sleep(pause)
            _publish(client, turn, published)
    listener.join(60)
    late = {i: at for i, at in published.items() if at - began > _WARM_SECONDS}
    delays = [arrived[i] - at for i, at in late.items() if i in arrived]
    return delays, len(late) - len(delays)


def _publish(client: httpx.Client, turn: int, published: dict[str, float]) -> None:
    records = [{"id": f"{turn}-{i}", "etype": f"e{i % _KINDS}", "message": "x" * 400} for i in range(_RATE // 10)]
    now = time.time()
    for record in records:
        published[str(record["id"])] = now
    client.post("/feeds/alarms", json=records).raise_for_status()


def _listen(server: Server, arrived: dict[str, float], published: dict[str, float], seconds: float) -> None:
    """Takes the time of each notice, then pulls to see which records it was about."""
    deadline = time.time() + _WARM_SECONDS + seconds + 30
    expected = int((_WARM_SECONDS + seconds) * 10) * (_RATE // 10)
    url = server.url.replace("http", "ws", 1) + "/control?broker=bench"
    headers = {"authorization": f"Bearer {server.token}"}
    with connect(url, additional_headers=headers, max_size=None) as socket, server.client() as client:
        while time.time() < deadline and not (len(published) == expected and len(arrived) == expected):
            try:
                message = json.loads(socket.recv(timeout=1))
            except TimeoutError:
                continue
            now = time.time()
            if message["type"] not in {"executed", "behind"}:
                continue
            first, last = message.get("first", message.get("execution")), message.get("last", message.get("execution"))
            wanted = {"channel": message["channel"], "first": first, "last": last}
            for result in client.post("/results", json=wanted).json()["results"]:
                for row in result["payload"]:
                    arrived.setdefault(row["id"], now)


def _unit(server: Server) -> float:
    """What this machine needs right now for the smallest call, to compare runs on machines of different speed."""
    with server.client() as client:
        times = []
        for _ in range(50):
            began = time.perf_counter()
            client.get("/health")
            times.append(time.perf_counter() - began)
    return quantile(times, 0.5)
