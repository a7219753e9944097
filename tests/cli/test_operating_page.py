"""What docs/operating.md tells an operator to type does what it says."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.network import Network
from tests.cli.program import Program
from tests.pages import ROOT, commands

PAGE = ROOT / "docs" / "operating.md"


def _typed(*beginning: str) -> list[list[str]]:
    """The arguments of the page's commands that begin so."""
    typed = [shlex.split(command, comments=True)[1:] for command in commands(PAGE) if command.startswith("tocsin ")]
    return [arguments for arguments in typed if tuple(arguments[: len(beginning)]) == beginning]


def test_tokens_are_made_as_it_says(tocsin: Program) -> None:
    typed = [*_typed("token", "sign"), *_typed("token", "add")]
    assert len(typed) == 4
    for arguments in typed:
        made = tocsin(*arguments)
        assert (made.status, len(made.out.split())) == (0, 1)


def test_tokens_are_made_worthless_as_it_says(tocsin: Program) -> None:
    for arguments in _typed("token", "add"):
        tocsin(*arguments)
    typed = [*_typed("token", "withdraw"), *_typed("token", "revoke")]
    assert len(typed) == 3
    for arguments in typed:
        assert tocsin(*arguments).status == 0


@pytest.mark.process
def test_people_and_brokers_are_removed_as_it_says(tocsin: Program, town: Network) -> None:
    tokens = {"me": town.register("bob"), "user": "demo", "broker": "demo"}
    town.register("ann")
    tocsin("balance", "drain", "north", "--wait")
    for arguments in _typed("remove"):
        assert tocsin(*arguments, "--token", tokens.pop(arguments[1])).status == 0
    assert not tokens
    assert (town.status()["subscribers"], [broker["name"] for broker in town.status()["brokers"]]) == (0, ["south"])


@pytest.mark.process
def test_a_network_is_watched_drained_and_balanced_as_it_says(tocsin: Program, town: Network) -> None:
    town.populate(6)
    typed = [*_typed("top"), *_typed("balance")]
    assert len(typed) == 9
    for arguments in typed:
        assert tocsin(*arguments).status == 0
    assert town.status()["balancing"] is True
    assert {broker["state"] for broker in town.status()["brokers"]} == {"serving"}
