"""``tocsin demo --hosts`` as a newcomer runs it, on a machine that has no Kafka."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tocsin.local.hosts import why_not

pytestmark = [pytest.mark.process, pytest.mark.postgresql]

SECONDS = 300
LEAST, MOST = 15, 200
SHARED = {"data", "node-1", "node-2"}


def test_it_says_what_runs_where_and_what_is_missing_and_ctrl_c_ends_it_without_a_trace(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tocsin", "demo", "--hosts", "--people", "12", "--brokers", "2"]
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
    assert re.search(r"^ +postgresql +10\.77\.0\.\d+ +PostgreSQL", out, re.MULTILINE)
    assert re.search(r"^ +broker-2 +10\.77\.0\.\d+ +a broker *$", out, re.MULTILINE)
    assert re.search(r"^ +standby +10\.77\.0\.\d+ +another data cluster, which stands by", out, re.MULTILINE)
    assert shared, out
    assert "Kafka is not installed" in out
    assert " 0 lost, 0 delivered twice, 0 out of order" in out
    _, left = psutil.wait_procs(children, timeout=SECONDS)
    assert not left
    assert not list(Path("/run/netns").glob(f"tocsin-{demo.pid}-*"))
