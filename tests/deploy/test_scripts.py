"""The scripts of the images, with real stores, a real coordinator and real brokers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.network import Network, network
from tests.deploy.files import DEPLOY
from tests.postgresql import PostgresqlServer
from tests.waiting import until

# Generous: a coordinator that plans for the first time has to compile its planners.
SECONDS = 600.0


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With ``tocsin`` on the path, and no settings but the broker's name."""
    program = tmp_path / "bin" / "tocsin"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tocsin "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(DEPLOY.parent), "TOCSIN_BROKER_NAME": "north"}


def _run(environment: dict[str, str], *command: object) -> subprocess.CompletedProcess[str]:
    script, *arguments = map(str, command)
    program = [str(DEPLOY / "bin" / script), *arguments]
    return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=SECONDS)


@pytest.mark.process
def test_tokens_are_made_once_in_both_stores(
    postgresql: PostgresqlServer, environment: dict[str, str], tmp_path: Path
) -> None:
    url = postgresql.database()
    stores = environment | {"TOCSIN_COORDINATOR_STORE": url, "TOCSIN_DATA_STATE": url}
    file, operator = tmp_path / "tocsin.toml", tmp_path / "token"
    assert _run(stores, "broker-tokens", file, operator).returncode == 0
    made, token = file.read_text(encoding="utf-8"), operator.read_text(encoding="utf-8").strip()
    broker = tomllib.loads(made)["broker"]
    assert len({token, broker["token"], broker["data_token"]}) == 3
    assert [path.stat().st_mode & 0o777 for path in (file, operator)] == [0o600, 0o600]
    assert _run(stores, "broker-tokens", file, operator).returncode == 0
    assert file.read_text(encoding="utf-8") == made
    # Another life of the broker, which has lost its file, gets others.
    file.unlink()
    assert _run(stores, "broker-tokens", file, operator).returncode == 0
    assert tomllib.loads(file.read_text(encoding="utf-8"))["broker"]["data_token"] != broker["data_token"]


@pytest.mark.process
def test_a_nodes_token_is_made_once_and_anew_when_its_file_is_lost(
    postgresql: PostgresqlServer, environment: dict[str, str], tmp_path: Path
) -> None:
    state = environment | {"TOCSIN_DATA_STATE": postgresql.database(), "TOCSIN_WORKER_NAME": "n1"}
    file, tokens = tmp_path / "tocsin.toml", list[str]()
    for _ in range(2):
        assert _run(state, "node-token", file).returncode == 0
        assert file.stat().st_mode & 0o777 == 0o600
        made = file.read_text(encoding="utf-8")
        assert _run(state, "node-token", file).returncode == 0
        assert file.read_text(encoding="utf-8") == made
        tokens.append(tomllib.loads(made)["worker"]["token"])
        file.unlink()
    assert len(set(tokens)) == 2


@pytest.mark.process
def test_without_the_database_no_file_is_made_and_the_step_fails(environment: dict[str, str], tmp_path: Path) -> None:
    nowhere = "postgresql://tocsin@127.0.0.1:1/tocsin"
    stores = environment | {"TOCSIN_COORDINATOR_STORE": nowhere, "TOCSIN_DATA_STATE": nowhere}
    failed = _run(stores, "broker-tokens", tmp_path / "tocsin.toml", tmp_path / "token")
    assert failed.returncode != 0
    assert "error:" in failed.stderr
    assert not (tmp_path / "tocsin.toml").exists()
    assert not (tmp_path / "token").exists()


@pytest.fixture
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network(tmp_path_factory.mktemp("network")) as running:
        yield running


def _states(town: Network) -> dict[str, tuple[str, int]]:
    return {broker["name"]: (broker["state"], broker["subscribers"]) for broker in town.status()["brokers"]}


class Drain:
    """``broker-drain`` beside the broker north."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.done = folder / "done"
        token = folder / "token"
        token.write_text("demo\n", encoding="utf-8")
        command = [str(DEPLOY / "bin" / "broker-drain"), str(token), str(self.done)]
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def said(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def stop(self) -> int:
        self._process.terminate()
        return self._process.wait(SECONDS)

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(SECONDS)


@pytest.fixture
def drains(environment: dict[str, str], tmp_path: Path) -> Iterator[list[Drain]]:
    started: list[Drain] = []
    yield started
    for drain in started:
        drain.kill()


@pytest.mark.process
def test_a_broker_is_let_in_when_it_comes_and_emptied_before_it_goes(
    town: Network, environment: dict[str, str], tmp_path: Path, drains: list[Drain]
) -> None:
    town.populate(6)
    beside = environment | {"TOCSIN_COORDINATOR": town.url, "DRAIN_SECONDS": str(SECONDS)}
    drain = Drain(beside, tmp_path)
    drains.append(drain)
    until(lambda: "north gets subscribers again." in drain.said())
    assert not drain.done.exists()
    assert drain.stop() == 0
    assert drain.done.exists()
    assert _states(town)["north"] == ("draining", 0)
    assert _states(town)["south"][1] == 6
    # The next life of the broker undoes it.
    again = Drain(beside, tmp_path)
    drains.append(again)
    until(lambda: _states(town)["north"][0] == "serving")
    assert not again.done.exists()


@pytest.mark.process
def test_a_broker_without_a_coordinator_can_be_stopped_all_the_same(
    environment: dict[str, str], tmp_path: Path, drains: list[Drain]
) -> None:
    with socket.socket() as silent:
        # Takes connections, and never says anything.
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        drain = Drain(environment | {"TOCSIN_COORDINATOR": url, "DRAIN_SECONDS": "3"}, tmp_path)
        drains.append(drain)
        silent.accept()[0].close()
        assert drain.stop() == 0
    assert drain.done.exists()


@pytest.mark.process
def test_healthy_says_whether_a_server_serves(town: Network, environment: dict[str, str]) -> None:
    assert _run(environment, "healthy", town.url.rpartition(":")[2]).returncode == 0
    refused = _run(environment, "healthy", 1)
    assert refused.returncode != 0
    assert "not healthy" in refused.stderr
