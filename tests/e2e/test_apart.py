"""Killed while it finds out with whom an execution fails: everybody still gets what is theirs, once."""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest

from tests.e2e.conftest import Cluster
from tests.e2e.oracle import ndjson
from tests.e2e.process import DataProcess

pytestmark = pytest.mark.process

APPLICATION: Final = """
CREATE DATASET Reports (id STRING, level INT) PRIMARY KEY id;
CREATE FEED reports INTO Reports SLICED BY id INTO 2 SLICES;
CREATE CONTINUOUS CHANNEL Shares(part INT, who INT) AS
SELECT r.id, r.level DIV part AS share FROM Reports r WHERE who >= 0 AND is_new(r);
"""
BEGUN: Final = "taking an execution apart"
REPORTS: Final = [f"r{number}" for number in range(3)]


def is_begun(server: DataProcess, times: int) -> bool:
    """Whether it has begun so often to take an execution apart."""
    return server.log.read_text(encoding="utf-8").count(BEGUN) == times


def test_a_process_killed_while_it_takes_an_execution_apart_does_it_again_and_gives_everybody_theirs_once(
    cluster: Cluster,
) -> None:
    server = cluster()
    server.start()
    server.wait_ready()
    server.apply(APPLICATION)
    wanted: list[dict[str, object]] = [{"part": 0 if who % 8 == 5 else 1, "who": who} for who in range(16)]
    bes = server.subscribe("Shares", wanted)
    good = [be for be, values in zip(bes, wanted, strict=True) if values["part"]]
    lines = ndjson([{"id": name, "level": 7} for name in REPORTS])
    assert server.publish("reports", lines).json()["accepted"] == len(REPORTS)
    for killed in (1, 2):
        server.until(partial(is_begun, server, killed), "an execution that is taken apart")
        server.kill()
        server.start()
    server.until(lambda: server.channels()["Shares"]["execution"], "an execution")
    server.until(lambda: server.channels()["Shares"]["state"] == "waiting", "the end of executions")
    found = [(result["be"], row["id"]) for result in server.results("Shares") for row in result["payload"]]
    assert sorted(found) == sorted((be, name) for be in good for name in REPORTS)
    assert is_begun(server, 3)
