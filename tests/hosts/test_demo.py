"""``tocsin demo --hosts`` as a newcomer runs it, on a machine that has all the servers that it can use."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tocsin.local.hosts import why_not
from tocsin.local.infrastructure import KAFKA, POSTGRESQL, S3, infrastructure_hosts

pytestmark = [pytest.mark.process, pytest.mark.postgresql, pytest.mark.kafka, pytest.mark.s3]

SECONDS = 300
LEAST, MOST = 15, 200
SHARED = {"data", "node-1", "node-2", "node-3"}
HOSTS = {
    "postgresql": "PostgreSQL",
    "kafka": "Kafka",
    "s3": "S3",
    "standby": "another data cluster, which stands by",
    "node-3": "a processing node",
    "broker-2": "a broker *$",
}


@pytest.fixture
def place() -> Iterator[Path]:
    """For all that it keeps; the user that PostgreSQL runs as may come in."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


def test_it_says_what_runs_where_and_ctrl_c_ends_it_without_a_trace(place: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    assert {KAFKA, POSTGRESQL, S3} <= set(infrastructure_hosts(1, s3=True)), "'make servers' installs what is missing"
    command = [sys.executable, "-m", "tocsin", "demo", "--hosts", "--people", "12", "--brokers", "2"]
    environment = {**os.environ, "TMPDIR": str(place)}
    demo = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert demo.stdout is not None
    said: list[str] = []
    shared = False
    with demo, demo.stdout as lines:
        for line in lines:
            said.append(line)
            second = re.match(r"── (\d+) s: ", line)
            shared |= set(re.findall(r"\d+ at ([\w-]+)", line)) >= SHARED
            if second and (int(second[1]) >= MOST or (int(second[1]) >= LEAST and shared)):
                break
        children = psutil.Process(demo.pid).children(recursive=True)
        # As a terminal does: to all processes of the group.
        os.killpg(demo.pid, signal.SIGINT)
        out = "".join([*said, *lines])
        assert demo.wait(SECONDS) == 0, out
    for host, role in HOSTS.items():
        assert re.search(rf"^ +{host} +10\.77\.0\.\d+ +{role}", out, re.MULTILINE), out
    assert "tocsin[" not in out
    assert shared, out
    assert " 0 lost, 0 delivered twice, 0 out of order" in out
    _, left = psutil.wait_procs(children, timeout=SECONDS)
    assert not left
    assert not list(Path("/run/netns").glob(f"tocsin-{demo.pid}-*"))
    assert not list(place.iterdir())
