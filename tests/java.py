"""Quick starts of Spark, of which a run of all tests sees some two hundred, each of them a Java process of its own.

Java reads Spark's classes from an archive, already parsed and checked, instead of loading them anew from a hundred
jars: ``python -m tests.java`` makes it, ``make test`` has it made, and without it all is the same but slower. And Java
does not optimize what lives for seconds.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

ARCHIVE: Final = Path(sys.prefix) / "spark.jsa"
# In a life of seconds the optimizing compiler takes more than it gives.
QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Read by Spark's own script for the process of a driver, and by no other Java.
VARIABLE: Final = "SPARK_SUBMIT_OPTS"
_APPLICATION: Final = """
CREATE DATASET Reports (id STRING, kind STRING, at TIMESTAMP) PRIMARY KEY id;
CREATE KEYED DATASET Kinds (kind STRING, words STRING) PRIMARY KEY kind;
CREATE FEED reports INTO Reports;
CREATE FEED kinds INTO Kinds;
CREATE CONTINUOUS CHANNEL OfKind(wanted STRING) AS
SELECT r.id, k.words FROM Reports r, Kinds k WHERE r.kind = wanted AND r.kind = k.kind AND is_new(r);
"""


def start_quickly() -> None:
    """Has every driver that this process or a child of it starts do so quickly."""
    archive = f' "-XX:SharedArchiveFile={ARCHIVE}" -Xlog:cds=off -Xlog:class+path=off' if ARCHIVE.exists() else ""
    os.environ[VARIABLE] = QUICK + archive


def make_archive() -> None:
    """Has a data cluster live for a moment, and keeps the classes that it has loaded."""
    from tests.e2e.process import DataProcess

    os.environ[VARIABLE] = f'{QUICK} "-XX:ArchiveClassesAtExit={ARCHIVE}" -Xlog:cds=off -Xlog:cds+dynamic=off'
    with tempfile.TemporaryDirectory() as directory:
        server = DataProcess(Path(directory, "data"), Path(directory, "log"))
        try:
            server.start()
            server.wait_ready()
            server.apply(_APPLICATION)
            server.subscribe("OfKind", [{"wanted": "flood"}])
            server.publish("kinds", b'{"kind": "flood", "words": "water"}').raise_for_status()
            server.wait_drained()
            server.publish("reports", b'{"id": "1", "kind": "flood", "at": "2026-01-01T00:00:00Z"}').raise_for_status()
            server.until(lambda: server.results("OfKind"), "a result")
            server.terminate()
            server.wait_alone()
        finally:
            server.close()


if __name__ == "__main__":
    make_archive()
