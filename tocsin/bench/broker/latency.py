"""From publisher to subscriber: the real data cluster with Spark, coordinator and broker, and a continuous channel."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from tocsin.bench.broker import targets
from tocsin.bench.broker.network import TOKEN, network
from tocsin.bench.broker.registration import register
from tocsin.bench.broker.sockets import Sockets
from tocsin.bench.broker.traveller import Traveller, await_subscriptions
from tocsin.bench.data.latency import APPLICATION
from tocsin.bench.data.server import BenchServer
from tocsin.bench.report import Figure, quantile
from tocsin.model.subscriber import Note

_CHANNEL: Final = "AlarmsOfType"
_KINDS: Final = 10
_RATE: Final = 10
# The JVM compiles what it runs often; until then everything takes several times as long.
_WARM_SECONDS: Final = 60
_PATIENCE: Final = 60


class _Row(msgspec.Struct):
    id: str


_ROWS: Final = msgspec.json.Decoder[list[_Row]](list[_Row])


class TimedPublications:
    """When records were published and how long each took to everybody who wanted it; all in one clock."""

    def __init__(self, server: BenchServer) -> None:
        self._server = server
        self._at: dict[str, float] = {}
        self._acknowledged: dict[str, float] = {}
        self.delays: dict[str, list[float]] = {}
        self.lateness: list[float] = []
        """By how much requests were sent later than they were due."""

    def arrived(self, note: Note) -> None:
        """Somebody was told."""
        now = time.perf_counter()
        for row in _ROWS.decode(note.payload):
            self.delays[row.id].append(now - self._at[row.id])

    def publish(self, seconds: float) -> None:
        """Ten requests a second, each with one record of every kind."""
        began = time.perf_counter()
        with self._server.calls() as calls:
            for turn in range(int(seconds * _RATE)):
                time.sleep(max(began + turn / _RATE - time.perf_counter(), 0))
                self.lateness.append(time.perf_counter() - began - turn / _RATE)
                records = [
                    {"id": f"{turn}-{kind}", "etype": f"e{kind}", "message": "x" * 300} for kind in range(_KINDS)
                ]
                for record in records:
                    self.delays[record["id"]] = []
                    self._at[record["id"]] = time.perf_counter()
                calls.call("POST", "/feeds/alarms", json=records)
                self._acknowledged.update(dict.fromkeys((record["id"] for record in records), time.perf_counter()))

    def missing(self, each: int) -> int:
        """How many records have not been told to so many."""
        return sum(len(delays) < each for delays in self.delays.values())

    def late(self, after: float) -> list[list[float]]:
        """The delays of the records published after so many seconds."""
        return [self.delays[id] for id in self._later(after)]

    def since_acknowledged(self, after: float) -> list[float]:
        """The same, all together, counted from when the publisher had its answer."""
        answers = {id: self._acknowledged[id] - self._at[id] for id in self._later(after)}
        return [max(delay - answer, 0.0) for id, answer in answers.items() for delay in self.delays[id]]

    def _later(self, after: float) -> list[str]:
        first = min(self._at.values()) + after
        return [id for id, at in self._at.items() if at >= first]


def latency(directory: Path, subscribers: int, seconds: float, say: Callable[[str], None]) -> Iterator[Figure]:
    """All on the machine's cores together, as on a machine of one's own."""
    each, everywhere = subscribers // _KINDS, os.sched_getaffinity(0)
    say("starting the data cluster")
    with (
        closing(Sockets()) as sockets,
        BenchServer(directory / "data") as server,
        network(directory, server.url, ["bench"], (everywhere, everywhere), lambda: sockets.attend(0.05)) as net,
    ):
        server.apply(APPLICATION)
        publications = TimedPublications(server)
        places = register(sockets, net.coordinator, TOKEN, [f"s{number}" for number in range(subscribers)])
        people = [
            Traveller(sockets, place.url, place.token, _CHANNEL, [{"event": f"e{n % _KINDS}"}], publications.arrived)
            for n, place in enumerate(places)
        ]
        await_subscriptions(sockets, people)
        say(f"publishing {_KINDS * _RATE} records a second for {_WARM_SECONDS + seconds:.0f} s")
        publisher = threading.Thread(target=publications.publish, args=(_WARM_SECONDS + seconds,), daemon=True)
        publisher.start()
        deadline = time.monotonic() + _WARM_SECONDS + seconds + _PATIENCE
        while publisher.is_alive() or (publications.missing(each) and time.monotonic() < deadline):
            sockets.attend(0.2)
    yield from _figures(publications, subscribers, each)


def _figures(publications: TimedPublications, subscribers: int, each: int) -> Iterator[Figure]:
    measured = publications.late(_WARM_SECONDS)
    delays = [delay for one in measured for delay in one]
    group = f"publisher to {subscribers} subscribers, continuous channel, {_KINDS * _RATE} records/s"
    p50, most = quantile(delays, 0.5), targets.LATENCY
    yield Figure(group, "p50", p50, "s", target=f"at most {most:g} s", met=p50 <= most)
    yield Figure(group, "p95", quantile(delays, 0.95), "s")
    yield Figure(group, "p99", quantile(delays, 0.99), "s")
    since = quantile(publications.since_acknowledged(_WARM_SECONDS), 0.5)
    yield Figure(group, "p50, from the acknowledgement", since, "s")
    yield Figure(group, "the publisher itself late, p99", quantile(publications.lateness, 0.99), "s")
    wrong = sum(len(one) != each for one in publications.delays.values())
    yield Figure(group, "records that not everybody got exactly once", wrong, "", target="0", met=wrong == 0)
