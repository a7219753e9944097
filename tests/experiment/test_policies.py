from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.balance import policies
from tocsin.errors import InvalidError
from tocsin.experiment.policies import resolve_policy

HEADS = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class {name}:
    name: ClassVar[str] = "{called}"

    def plan(self, problem): ...
"""


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_planner_of_the_registry_is_known_by_its_name() -> None:
    assert resolve_policy("gsh") == "gsh"


def test_one_s_own_is_found_in_the_working_directory_and_entered_by_its_name() -> None:
    Path("policy_one.py").write_text(HEADS.format(name="Heads", called="heads"), encoding="utf-8")
    assert resolve_policy("policy_one:Heads") == "heads"
    assert policies.planner("heads").name == "heads"
    assert resolve_policy("policy_one:Heads") == "heads"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("nothing", "there is no planner 'nothing'; there are ldm, sdm"),
        ("policy_two:Other", "policy_two needs a dataclass Other with a method plan"),
        ("policy_two:Heads", "'gsh', as tocsin.balance.planners.gsh:GSH does; choose another name"),
        ("missing_module:Heads", "cannot be imported: No module named 'missing_module'"),
    ],
)
def test_what_is_no_policy_is_refused_with_the_reason(policy: str, message: str) -> None:
    Path("policy_two.py").write_text(HEADS.format(name="Heads", called="gsh"), encoding="utf-8")
    with pytest.raises(InvalidError, match=message.replace("(", r"\(")):
        resolve_policy(policy)
