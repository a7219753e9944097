from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.network import Network, network
from tests.cli.program import Program
from tests.data.server.memory import MemoryCluster, MemoryTokens
from tocsin.data.server.app import create_app
from tocsin.data.server.serve import bind
from tocsin.http.doorway import Doorways
from tocsin.http.listening import HttpServer, address, config
from tocsin.settings import Settings


@pytest.fixture
def tocsin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return Program(monkeypatch, capsys)


@pytest.fixture
def town(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    """A coordinator that the environment leads every command to, with two brokers and an operator's token."""
    with network(tmp_path_factory.mktemp("network")) as running:
        monkeypatch.setenv("TOCSIN_COORDINATOR", running.url)
        monkeypatch.setenv("TOCSIN_TOKEN", "demo")
        yield running


@pytest.fixture
def cluster(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryCluster]:
    """A data cluster that the environment leads every command to, with an admin's token."""
    cluster, listens = MemoryCluster(), threading.Event()
    with bind(settings) as listener:
        doorways = Doorways(settings.data.connections)
        server = HttpServer(config(create_app(cluster, MemoryTokens(), settings), doorways), listens.set, doorways)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        assert listens.wait(10)
        monkeypatch.setenv("TOCSIN_SERVER", address(listener))
        monkeypatch.setenv("TOCSIN_TOKEN", "admin")
        yield cluster
        server.should_exit = True
        thread.join()
