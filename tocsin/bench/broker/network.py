"""The real coordinator and real brokers, each in a process of its own, for one measurement."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil

from tocsin.bench.broker.processes import free_port, running, wait_until
from tocsin.bench.broker.sockets import Sockets, Take
from tocsin.client.operator import ServerCalls
from tocsin.errors import TocsinError
from tocsin.model.messages import BareHealth

TOKEN: Final = "demo"
_PROGRAM: Final = (sys.executable, "-m", "tocsin", "--set", "log.level=warning")


class Relay:
    """Passes on, in a thread of its own, what brokers and coordinator say to each other: ``bytes`` so far."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target, self._sockets, self._ended = target, Sockets(), False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.bytes = 0
        self._sockets.listen(self._listener, self._accept)
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it."""
        self._ended = True
        self._thread.join()
        self._sockets.close()

    def _run(self) -> None:
        while not self._ended:
            self._sockets.attend(0.1)

    def _accept(self, buffer: memoryview) -> int:  # noqa: ARG002
        near, _ = self._listener.accept()
        far = socket.create_connection(self._target)
        for source, sink in ((near, far), (far, near)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets.listen(source, self._passing(source, sink))
        return 0

    def _passing(self, source: socket.socket, sink: socket.socket) -> Take:
        def taker(buffer: memoryview) -> int:
            size = source.recv_into(buffer)
            self.bytes += size
            if size:
                sink.sendall(buffer[:size])
            else:
                self._sockets.dismiss(source)
                self._sockets.dismiss(sink)
            return 0

        return taker


class BenchNetwork:
    """A running network; ``brokers`` are their processes by their names."""

    def __init__(self, coordinator: str, brokers: dict[str, psutil.Process], relay: Relay | None) -> None:
        self.coordinator, self.brokers, self._relay = coordinator, brokers, relay

    @property
    def coordination_bytes(self) -> int:
        """Bytes between brokers and coordinator so far, if they are counted."""
        return self._relay.bytes if self._relay else 0

    def put(self, path: str, content: Any) -> None:
        """A call of the coordinator, as an operator."""
        with ServerCalls(self.coordinator, TOKEN, seconds=30) as calls:
            calls.call("PUT", path, json=content)

    def memory(self, broker: str) -> int:
        """Bytes that a broker's process occupies."""
        size: int = self.brokers[broker].memory_info().rss
        return size


@contextmanager
def network(
    directory: Path,
    data: str,
    names: Sequence[str],
    cores: tuple[set[int], set[int]],
    attend: Callable[[], object],
    relayed: bool = False,
) -> Iterator[BenchNetwork]:
    """Starts a coordinator and brokers; brokers have the first cores, the coordinator the others.

    ``data`` is the data cluster's URL and ``attend`` is called while brokers connect to it. What brokers and
    coordinator say to each other is counted if it is ``relayed``.
    """
    brokers, others = cores
    port, log = free_port(), directory / "network.log"
    url = f"http://127.0.0.1:{port}"
    coordinator = [f"coordinator.directory={directory / 'coordinator'}", f"coordinator.port={port}"]
    with ExitStack() as stack:
        process = stack.enter_context(
            running([*_PROGRAM, *_set(coordinator), "coordinator", "--demo-token"], log, others)
        )
        wait_until(lambda: _healthy(url), process, log, "the coordinator")
        relay = Relay(("127.0.0.1", port)) if relayed else None
        if relay:
            stack.callback(relay.close)
        started: dict[str, psutil.Process] = {}
        for name in names:
            listening = free_port()
            command = _broker(name, listening, relay.url if relay else url, data)
            started[name] = stack.enter_context(running(command, log, brokers))
            ready = partial(_attend, attend, f"http://127.0.0.1:{listening}")
            wait_until(ready, started[name], log, f"broker {name}")
        yield BenchNetwork(url, started, relay)


def _broker(name: str, port: int, coordinator: str, data: str) -> list[str]:
    """Pings would be counted as deliveries, so there are none."""
    settings = {"name": name, "port": port, "coordinator": coordinator, "data": data}
    more = {"token": TOKEN, "data_token": TOKEN, "ping_seconds": 3600}
    return [*_PROGRAM, *_set([f"broker.{key}={value}" for key, value in (settings | more).items()]), "broker"]


def _attend(attend: Callable[[], object], url: str) -> bool:
    attend()
    return _healthy(url)


def _set(settings: Sequence[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def _healthy(url: str) -> bool:
    try:
        with ServerCalls(url, None, seconds=1) as calls:
            return calls.ask(BareHealth, "GET", "/health").status == "ok"
    except TocsinError:
        return False
