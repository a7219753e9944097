"""A whole data cluster whose lake is in S3: killed, and its store killed, it loses nothing and does nothing twice."""

from __future__ import annotations

import signal
from collections import Counter
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.e2e.conftest import Cluster
from tests.e2e.oracle import ndjson
from tests.e2e.process import DataProcess
from tests.s3 import S3Server, connector_jars

pytestmark = pytest.mark.process

APPLICATION = """
CREATE DATASET Reports (id STRING, etype STRING) PRIMARY KEY id;
CREATE FEED reports INTO Reports SLICED BY id INTO 2 SLICES;
CREATE CONTINUOUS CHANNEL OfType(event STRING) AS
  SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r);
"""


class Reports:
    """Publishes seeded reports, and remembers them."""

    def __init__(self, server: DataProcess) -> None:
        self._server, self._chance = server, Random(15)
        self.sent: list[dict[str, Any]] = []

    def publish(self) -> None:
        """A few more, in several requests, each of which is accepted."""
        for _ in range(4):
            first, size = len(self.sent), self._chance.randint(1, 10)
            made = [{"id": f"r{first + n}", "etype": self._chance.choice(("fire", "flood"))} for n in range(size)]
            self.sent += made
            assert self._server.publish("reports", ndjson(made)).status_code == 200

    def fires(self) -> Counter[str]:
        return Counter(report["id"] for report in self.sent if report["etype"] == "fire")


def found(server: DataProcess) -> Counter[str]:
    return Counter(row["id"] for result in server.results("OfType") for row in result["payload"])


def test_with_its_lake_in_s3_everything_accepted_is_found_once_whatever_dies(
    cluster: Cluster, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.variables.items():
        monkeypatch.setenv(name, value)
    folder = s3.folder()
    server = cluster(
        lake__location=folder.url,
        lake__maintenance_seconds=2,
        lake__compact_files=4,
        lake__vacuum_after_seconds=5,
        spark__extra=f'{{ "spark.jars" = "{connector_jars()}" }}',
    )
    server.start()
    server.wait_ready()
    server.apply(APPLICATION)
    server.subscribe("OfType", [{"event": "fire"}])
    reports = Reports(server)
    reports.publish()
    server.until(lambda: found(server) == reports.fires(), "results")
    reports.publish()
    server.kill()
    server.wait_alone()
    server.start()
    reports.publish()
    server.wait_ready()
    server.until(lambda: found(server) == reports.fires(), "results of what was accepted before")
    s3.stop(signal.SIGKILL)
    # What is accepted is in the feed's log; the lake has it when the store is there again.
    reports.publish()
    s3.start()
    reports.publish()
    server.until(lambda: found(server) == reports.fires(), "results of what was accepted without the store")
    server.wait_drained()
    stored = DeltaTable(**folder.below("datasets").below("Reports").delta).to_pyarrow_table(columns=["id", "etype"])
    assert Counter(stored["id"].to_pylist()) == Counter(report["id"] for report in reports.sent)
    assert not (server.directory / "datasets").exists()
    server.until(lambda: server.health()["problems"] == [], "health")
