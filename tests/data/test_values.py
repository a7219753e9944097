"""Values from a publication to a result: each comes out as it went in, or is refused on its way in."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest

from tests.data.world import World
from tocsin.errors import InvalidError

pytestmark = pytest.mark.spark

APPLICATION = """
CREATE DATASET Fees (id STRING, fee DECIMAL(20, 2), at TIMESTAMP, n BIGINT, x DOUBLE, f FLOAT, day DATE,
  times ARRAY<STRUCT<at: TIMESTAMP>>) PRIMARY KEY id;
CREATE FEED fees INTO Fees INTO 2 SLICES;
CREATE CONTINUOUS CHANNEL At(moment TIMESTAMP) AS SELECT f.* FROM Fees f WHERE f.at = moment AND is_new(f);
CREATE CONTINUOUS CHANNEL Sorted(most DECIMAL(20, 2)) AS
  SELECT f.at, most AS bound FROM Fees f WHERE f.fee <= most AND is_new(f) ORDER BY f.at;
"""
RECORD = (
    '{"id":"a\\u0000e\\u0301","fee":123456789012345678.09,"at":"2026-01-31T12:00:00.123456Z","n":9223372036854775807,'
    '"x":-0.1,"f":0.1,"day":"2026-01-31","times":[{"at":"2026-01-31T13:00:00.000001+01:00"},null]}'
)


def published(world: World, *records: str) -> Any:
    body = "\n".join(records).encode()
    return asyncio.run(world.catalog.pipelines["fees"].admission.publish(body, "application/x-ndjson"))


@pytest.fixture
def fees(world: World) -> World:
    world.start()
    world.apply(APPLICATION)
    return world


def test_every_digit_of_a_value_comes_out_again(fees: World) -> None:
    moment = "2026-01-31T13:00:00.123456+01:00"
    fees.attach("At", {"moment": moment}, {"moment": moment.replace("456", "457")})
    assert published(fees, RECORD).refused == []
    fees.wait_for("At", 1)
    [[result]] = [part.results for part in fees.catalog.live["At"].results.pull(1, 10**9)]
    assert json.loads(bytes(result.payload), parse_float=Decimal) == [
        {
            "id": "a\0e\u0301",
            "fee": Decimal("123456789012345678.09"),
            "at": "2026-01-31T12:00:00.123456Z",
            "n": 2**63 - 1,
            "x": Decimal("-0.1"),
            "f": Decimal("0.1"),
            "day": "2026-01-31",
            "times": [{"at": "2026-01-31T12:00:00.000001Z"}, None],
        }
    ]


def test_rows_in_an_order_have_their_microseconds_and_parameters_their_digits(fees: World) -> None:
    fees.attach("Sorted", {"most": "1.55"})
    at = "2026-01-31T12:00:00.00000{}Z"
    lines = [json.dumps({"id": str(n), "fee": "1.55", "at": at.format(n)}) for n in (2, 1)]
    assert published(fees, *lines).accepted == 2
    rows = [row for _, row in fees.wait_for("Sorted", 2)]
    assert rows == [{"at": at.format(n), "bound": 1.55} for n in (1, 2)]


def test_a_value_that_would_change_is_refused_on_its_way_in(fees: World) -> None:
    refused = published(
        fees, '{"id":"a","fee":0.125}', '{"id":"b","at":"2026-01-31T12:00:00"}', '{"id":"c","fee":0.120}'
    ).refused
    assert [refusal.index for refusal in refused] == [0, 1]
    with pytest.raises(InvalidError, match=r"parameter 'most': .* and 2 after"):
        fees.attach("Sorted", {"most": 1.555})
    with pytest.raises(InvalidError, match=r"parameter 'moment': .*with a zone"):
        fees.attach("At", {"moment": "2026-01-31T12:00:00"})
