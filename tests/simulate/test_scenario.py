"""Scenario files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tocsin.errors import InvalidError
from tocsin.simulate.scenario import Scenario, check, read, write
from tocsin.simulate.scenarios.paper import Paper, paper

TINY = Paper(subscribers=3, brokers=2, channels=2, backend_subscriptions=4, each=(1, 2), seconds=60, subscribing=20)


def changed(**values: object) -> Scenario:
    return msgspec.structs.replace(paper(TINY), **values)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write(tmp_path / "tiny.json", paper(TINY))
    assert read(tmp_path / "tiny.json") == paper(TINY)


def test_the_same_seed_makes_the_same_scenario() -> None:
    assert paper(TINY, 1) == paper(TINY, 1) != paper(TINY, 2)


@pytest.mark.parametrize(
    ("table", "column", "value", "says"),
    [
        ("subscribes", "line", [99], "row 0 of subscribes has line 99; the lines are 0 to 7"),
        ("logins", "subscriber", [-1, 0, 0], "row 0 of logins has subscriber -1; the subscribers are 0 to 2"),
        ("logins", "at", [1.0, 70.0, 2.0], "row 1 of logins has at 70.0; times are from 0 to 60"),
        ("logins", "at", [1.0], "the columns of logins differ in length"),
    ],
)
def test_a_row_that_cannot_be_is_named(tmp_path: Path, table: str, column: str, value: list[object], says: str) -> None:
    scenario = paper(TINY)
    whole = msgspec.structs.replace(getattr(scenario, table), **{column: value})
    if table == "subscribes":
        whole = msgspec.structs.replace(whole, at=[1.0], subscriber=[0])
    write(tmp_path / "wrong.json", changed(**{table: whole}))
    with pytest.raises(InvalidError) as caught:
        read(tmp_path / "wrong.json")
    assert says in str(caught.value)


def test_names_are_given_once_and_amounts_are_possible() -> None:
    one, other = paper(TINY).brokers
    with pytest.raises(InvalidError, match=f"two brokers are called {one.name}"):
        check(changed(brokers=[one, one]))
    with pytest.raises(InvalidError, match=r"has a capacity of 0.*; it must be above 0"):
        check(changed(brokers=[one, msgspec.structs.replace(other, capacity=0.0)]))
    lines = paper(TINY).lines
    with pytest.raises(InvalidError, match=r"row 0 of lines has bytes -1\.0"):
        check(changed(lines=msgspec.structs.replace(lines, bytes=[-1.0, *lines.bytes[1:]])))


def test_what_is_no_scenario_is_refused_with_the_place_where_the_format_is_described(tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text('{"name": 5}')
    with pytest.raises(InvalidError, match=r"wrong\.json: is no scenario: .*docs/simulator\.md"):
        read(tmp_path / "wrong.json")
    with pytest.raises(InvalidError, match="cannot be read"):
        read(tmp_path / "missing.json")
