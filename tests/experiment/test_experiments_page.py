"""What docs/experiments.md shows runs."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.program import Program
from tests.pages import ROOT, blocks, words
from tocsin.experiment.catalog import STUDIES
from tocsin.experiment.schemes import BY_NAME

PAGE = ROOT / "docs" / "experiments.md"


@pytest.mark.slow
def test_the_policy_that_is_shown_takes_part(tocsin: Program) -> None:
    (shown,) = blocks(PAGE, "python")
    Path("mine.py").write_text(shown, encoding="utf-8")
    assert tocsin("experiment", "scale", "--quick", "--policy", "mine:Heads", "--out", "run").status == 0
    assert ",heads," in Path("run/plans.csv").read_text(encoding="utf-8")


def test_every_experiment_and_scheme_is_described() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in STUDIES if f"## {name}" not in text] == []
    assert set(BY_NAME) - set(words(PAGE)) == set()


def test_figures_are_drawings() -> None:
    figures = re.findall(r"\]\((figures/\S+\.svg)\)", PAGE.read_text(encoding="utf-8"))
    assert figures
    for figure in figures:
        assert ElementTree.parse(PAGE.parent / figure).getroot().tag == "{http://www.w3.org/2000/svg}svg"
