"""An overlay on several hosts: a head, an edge that links to it from another, and clients on a third."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tocsin.local.hosts import Hosts, hosts, why_not

pytestmark = pytest.mark.process

_PATIENCE = 60.0
_TOCSIN = [sys.executable, "-m", "tocsin"]


@contextmanager
def started(made: Hosts, host: str, role: str, **settings: object) -> Iterator[None]:
    """A broker on a host, when it listens."""
    url = f"ws://{made.address(host)}:8710"
    all_settings = {"name": host, "host": "0.0.0.0", "url": url, **settings}
    flags = [f"--set=overlay.{name}={value}" for name, value in all_settings.items()]
    environment = {**os.environ, "TOCSIN_OVERLAY_TOKEN": "of-brokers"}
    command = [*made.on(host), *_TOCSIN, *flags, "overlay", role]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stderr
            assert any(re.search(r"listens", line) for line in broker.stderr)
            yield
        finally:
            broker.terminate()


def test_an_edge_and_its_clients_reach_brokers_on_other_hosts_without_a_clients_token(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    with ExitStack() as stack:
        made = stack.enter_context(hosts("ann", "bob", "cora"))
        head, edge = (f"ws://{made.address(host)}:8710" for host in ("ann", "bob"))
        stack.enter_context(started(made, "ann", "head", directory=tmp_path / "head"))
        stack.enter_context(started(made, "bob", "edge", head=head))
        published = '{"high": 41}\n{"high": 39}\n{"high": 42}\n'
        publish = [*made.on("cora"), *_TOCSIN, "publish", head, "-"]
        subprocess.run(publish, input=published, text=True, timeout=_PATIENCE, check=True)
        cursors = tmp_path / "cursors"
        cursors.write_text('{"ann": [0]}', encoding="utf-8")
        subscribe = [*made.on("cora"), *_TOCSIN, "subscribe", "--where", "high > 40", "--cursors", str(cursors), edge]
        with subprocess.Popen(subscribe, stdout=subprocess.PIPE, text=True) as reading:
            assert reading.stdout
            try:
                said = [reading.stdout.readline() for _ in range(2)]
            finally:
                reading.terminate()
        assert ["41" in said[0], "42" in said[1]] == [True, True]
