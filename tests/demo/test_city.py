"""The process of the people, as far as it goes without a network; with one it is tested in ``tests/cli``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tocsin.demo.city import Plan
from tocsin.demo.people import people
from tocsin.errors import InvalidError, UnavailableError

NOWHERE = "http://127.0.0.1:1"


async def test_people_who_find_no_coordinator_say_so_and_are_gone(tmp_path: Path) -> None:
    async with people(Plan(NOWHERE, NOWHERE, 2, 7), tmp_path / "people.log") as crowd:
        with pytest.raises(UnavailableError, match="the people of the demo are gone: error: no coordinator at"):
            async for _ in crowd.tellings():
                pass


def test_the_world_of_a_plan_is_seeded() -> None:
    first, again = (next(Plan(NOWHERE, NOWHERE, 5, 7).world(datetime.now(UTC)).seconds()) for _ in range(2))
    assert [place["x"] for place in first.locations] == [place["x"] for place in again.locations]


def test_a_trace_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="cannot be read as traces in Parquet"):
        Plan(NOWHERE, NOWHERE, 5, 7, str(tmp_path / "none.parquet")).world(datetime.now(UTC))
