from __future__ import annotations

import json
from typing import Any

from tocsin.local.invitation import FLOOD, example

READINGS = (
    "CREATE DATASET Readings (id STRING, station STRING, dust DOUBLE, n INT, ok BOOLEAN, at TIMESTAMP, "
    "tags ARRAY<STRING>) PRIMARY KEY id;"
)
BAD_AIR = "CREATE CONTINUOUS CHANNEL BadAir(town STRING, above DOUBLE) AS SELECT r.* FROM Readings r WHERE is_new(r);"


def listed(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


def test_an_unknown_application_gets_names_and_types_of_its_own() -> None:
    found = example(
        [listed("BadAir", statement=BAD_AIR)],
        [listed("readings", dataset="Readings")],
        [listed("Readings", statement=READINGS)],
    )
    assert found is not None
    assert found.subscription == "BadAir --param town=text --param above=1"
    assert found.feed == "readings"
    assert found.record == {
        "id": "id-'$RANDOM'",
        "station": "text",
        "dust": 1,
        "n": 1,
        "ok": True,
        "at": "2026-01-01T00:00:00Z",
    }
    assert json.loads(found.text) == found.record


def test_the_emergency_application_gets_a_record_that_is_found() -> None:
    assert example([listed("Other"), listed(FLOOD.channel)], [listed(FLOOD.feed)], []) is FLOOD
    assert FLOOD.parameters["event"] == FLOOD.record["etype"]


def test_without_channels_or_feeds_there_is_nothing_to_try() -> None:
    assert example([], [listed("readings")], []) is None
    assert example([listed("BadAir")], [], []) is None
