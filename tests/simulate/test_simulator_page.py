"""docs/simulator.md tells what the commands give."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks
from tests.simulate.test_scenario_commands import simulate

PAGE = ROOT / "docs" / "simulator.md"


def test_the_fluid_example_has_the_numbers_of_the_command() -> None:
    page = PAGE.read_text(encoding="utf-8")
    row = re.search(r"^\| 10,000 × 10 \| 1,000 \|.*\| ([\d,]+) \| ([\d.]+), ([\d.]+) \|$", page, re.MULTILINE)
    assert row
    figures = json.loads(simulate("fluid", "--subscribers", "10000", "--brokers", "10", "--json").stdout)
    assert row[1] == f"{figures['moves']:,}"
    assert f"cov is {row[2]}" in figures["decisions"][0]["reason"]
    assert row[3] == f"{figures['last_cov']:.3f}"


@pytest.mark.slow
def test_the_city_comes_out_as_it_is_shown(tmp_path: Path) -> None:
    simulate("scenario", "city", "--out", tmp_path / "city.json")
    told = simulate("run", tmp_path / "city.json").stdout
    (sample,) = (block for block in blocks(PAGE, "") if "nearest+migrate+shuffle" in block)
    lines = [re.sub(r" events, .*", " events", line).strip("│┃ ") for line in sample.splitlines() if line != "…"]
    assert [line for line in lines[1:] if line not in told] == []
